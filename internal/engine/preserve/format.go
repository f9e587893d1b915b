// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preserve

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// Format is that of the preserved data of a version as a text: an object with the members
//
//	format     3
//	rules      identifies those by which the entries were written
//	hidden     values that the other version got nothing from, by their addresses
//	values     other values, by their addresses
//	absent     the addresses of values that were absent
//	replaced   what comes back in place of values and absent ones, by their addresses
//	inserts    elements: the address of their list, the index, the value, and true if it is hidden
//	orders     the elements of lists in their order, by the addresses of the lists
//	older      an object with entries that were written by other rules
//	dropped    the addresses of the first values that annotations had no room for
//	unreadable other text that was found in the place of the data
//
// or, of a long text, format and
//
//	deflate    the text, compressed (RFC 1951), as base64
//
// An address is a JSON Pointer in which an element is in brackets (names.go).
const Format = 3

// Data is the preserved data of a version.
type Data struct {
	Entries []Entry
	// Unreadable is text that Decode could not read.
	Unreadable string
	// Dropped are the addresses of values for which there was no room.
	Dropped []string
}

// readable is the size up to which data is not compressed, in bytes, so that most of it stays readable.
const readable = 16 << 10

// MaxSize limits the size of data that was compressed, in bytes: an API server accepts no request of more than 3 MiB.
const MaxSize = 4 << 20

// Sorted returns the entries, sorted by address.
func (d Data) Sorted() []Entry {
	entries := slices.Clone(d.Entries)
	slices.SortStableFunc(entries, func(a, b Entry) int { return a.At.compare(b.At) })
	return entries
}

// Encode returns the text of data.
func (d Data) Encode() []byte {
	const usual = 256
	text := appendEntries(strconv.AppendInt(append(make([]byte, 0, usual), `{"format":`...), Format, 10), d.Sorted())
	if len(d.Dropped) > 0 {
		text = append(text, `,"dropped":[`...)
		for i, pointer := range d.Dropped {
			if i > 0 {
				text = append(text, ',')
			}
			text = tree.Quote(text, pointer)
		}
		text = append(text, ']')
	}
	if d.Unreadable != "" {
		text = tree.Quote(append(text, `,"unreadable":`...), d.Unreadable)
	}
	if text = append(text, '}'); len(text) > readable {
		return compress(text)
	}
	return text
}

// Size is an upper bound of the bytes that an entry takes in the text of data.
func (e *Entry) Size() int {
	const times, around = 2, 32
	size := times*(len(tree.Quote(nil, e.At.Pointer()))+around) + len(e.Rules) + len(e.Replaced)
	if e.Value != nil {
		size += len(e.Value.JSON())
	}
	for _, name := range e.Order {
		size += len(tree.Quote(nil, name)) + len(",")
	}
	return size
}

// compress returns the compressed form of a text if it is shorter.
func compress(text []byte) []byte {
	var packed bytes.Buffer
	packed.WriteString(`{"format":` + strconv.Itoa(Format) + `,"deflate":"`)
	encoder := base64.NewEncoder(base64.StdEncoding, &packed)
	writer, err := flate.NewWriter(encoder, flate.DefaultCompression)
	if err != nil {
		return text // cannot happen: the level is valid
	}
	// A buffer accepts all writes.
	_, _ = writer.Write(text)
	_, _ = writer.Close(), encoder.Close()
	packed.WriteString(`"}`)
	if packed.Len() >= len(text) {
		return text
	}
	return packed.Bytes()
}

// expand is the reverse of compress.
func expand(a *tree.Arena, packed string) (text []byte, ok bool) {
	reader := flate.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(packed)))
	var expanded bytes.Buffer
	size, err := expanded.ReadFrom(io.LimitReader(metered{a, reader}, MaxSize+1))
	return expanded.Bytes(), err == nil && size <= MaxSize
}

// metered counts the memory of what is read.
type metered struct {
	*tree.Arena
	io.Reader
}

func (m metered) Read(into []byte) (int, error) {
	n, err := m.Reader.Read(into)
	m.Spend(n, copies*n)
	return n, err
}

// appendEntries appends the members of those that were written by the same rules as the first one, and the rest. It uses the
// memory of entries.
func appendEntries(text []byte, entries []Entry) []byte {
	if len(entries) == 0 {
		return text
	}
	w := &writer{text: tree.Quote(append(text, `,"rules":`...), entries[0].Rules)}
	same, older := entries[:0], []Entry(nil)
	for _, e := range entries {
		switch {
		case e.Rules != entries[0].Rules:
			older = append(older, e)
		case e.Kind == Insert || !hasBeside(same, e, func(o Entry) bool { return o.Kind == e.Kind }):
			same = append(same, e)
		}
	}
	w.values("hidden", same, true)
	w.values("values", same, false)
	w.group("absent", '[', ']', same, Absent, func(Entry) bool { return true }, func(e Entry) { w.text = tree.Quote(w.text, e.At.Pointer()) })
	w.replaced(same)
	w.group("inserts", '[', ']', same, Insert, func(Entry) bool { return true }, w.insert)
	w.group("orders", '{', '}', same, Order, func(Entry) bool { return true }, w.order)
	if len(older) > 0 {
		w.text = append(w.text, `,"older":{`...)
		inner := appendEntries(nil, older)
		w.text = append(append(w.text, inner[1:]...), '}')
	}
	return w.text
}

// hasBeside reports whether the last of sorted entries, which have the address of another one, are such.
func hasBeside(entries []Entry, e Entry, is func(Entry) bool) bool {
	for _, o := range slices.Backward(entries) {
		if !o.At.Is(e.At) {
			break
		}
		if is(o) {
			return true
		}
	}
	return false
}

type writer struct{ text []byte }

func (w *writer) group(name string, begin, end byte, entries []Entry, kind Kind, fits func(Entry) bool, write func(Entry)) {
	begun := false
	for _, e := range entries {
		if e.Kind != kind || !fits(e) {
			continue
		}
		if !begun {
			w.text = append(append(append(w.text, ",\""...), name...), '"', ':', begin)
		} else {
			w.text = append(w.text, ',')
		}
		begun = true
		write(e)
	}
	if begun {
		w.text = append(w.text, end)
	}
}

func (w *writer) values(name string, entries []Entry, hidden bool) {
	w.group(name, '{', '}', entries, Value, func(e Entry) bool { return e.Hidden == hidden }, func(e Entry) {
		w.text = e.Value.Append(append(tree.Quote(w.text, e.At.Pointer()), ':'))
	})
}

func (w *writer) replaced(entries []Entry) {
	begin := `,"replaced":{`
	for i, e := range entries {
		if e.Replaced != "" && !hasBeside(entries[:i], e, func(o Entry) bool { return o.Replaced != "" }) {
			w.text = tree.Quote(append(tree.Quote(append(w.text, begin...), e.At.Pointer()), ':'), e.Replaced)
			begin = ","
		}
	}
	if begin == "," {
		w.text = append(w.text, '}')
	}
}

func (w *writer) insert(e Entry) {
	w.text = append(tree.Quote(append(w.text, '['), e.At.Pointer()), ',')
	w.text = e.Value.Append(append(strconv.AppendInt(w.text, int64(e.Index), 10), ','))
	if e.Hidden {
		w.text = append(w.text, ",true"...)
	}
	w.text = append(w.text, ']')
}

func (w *writer) order(e Entry) {
	w.text = append(tree.Quote(w.text, e.At.Pointer()), ":["...)
	for i, name := range e.Order {
		if i > 0 {
			w.text = append(w.text, ',')
		}
		w.text = tree.Quote(w.text, name)
	}
	w.text = append(w.text, ']')
}

// Decode reads what Encode has written. It returns false for any other text: users can write annotations, and later
// versions of this program write other formats.
func Decode(a *tree.Arena, text []byte) (data Data, ok bool) {
	object, ok := decodeFormat(a, text)
	if packed := object.Get("deflate"); ok && packed != nil {
		if object.Len() != len([]string{"format", "deflate"}) || !packed.Is(tree.String) {
			return Data{}, false
		}
		if text, ok = expand(a, packed.Text()); ok {
			object, ok = decodeFormat(a, text)
		}
	}
	if !ok || object.Get("deflate") != nil {
		return Data{}, false
	}
	data.Unreadable = object.Get("unreadable").Text()
	for _, pointer := range object.Get("dropped").Elems() {
		data.Dropped = append(data.Dropped, pointer.Text())
	}
	const formats = 8
	for range formats {
		if data.Entries, ok = decodeEntries(a, object, data.Entries); !ok {
			return Data{}, false
		}
		if object = object.Get("older"); object == nil {
			slices.SortStableFunc(data.Entries, func(a, b Entry) int { return a.At.compare(b.At) })
			return data, true
		}
	}
	return Data{}, false
}

func decodeFormat(a *tree.Arena, text []byte) (*tree.Node, bool) {
	object, err := a.Read(text)
	if err != nil {
		return nil, false
	}
	format := object.Get("format")
	return object, format.Is(tree.Number) && string(format.JSON()) == strconv.Itoa(Format)
}

func decodeEntries(a *tree.Arena, object *tree.Node, into []Entry) (entries []Entry, ok bool) {
	if !object.Is(tree.Object) {
		return nil, false
	}
	start := len(into)
	for _, m := range object.Members() {
		ok = true
		switch m.Name {
		case "format", "older":
		case "dropped":
			ok = m.Value.Is(tree.List)
		case "unreadable":
			ok = m.Value.Is(tree.String)
		case "replaced":
			ok = m.Value.Is(tree.Object)
		case "rules":
			ok = m.Value.Is(tree.String)
		case "hidden", "values":
			into, ok = decodeMembers(a, m.Value, into, func(e *Entry, value *tree.Node) bool {
				e.Value, e.Hidden = value, m.Name == "hidden"
				return len(e.At) > 0
			})
		case "orders":
			into, ok = decodeMembers(a, m.Value, into, func(e *Entry, value *tree.Node) bool {
				e.Kind = Order
				for _, name := range value.Elems() {
					e.Order = append(e.Order, name.Text())
				}
				return value.Is(tree.List)
			})
		case "absent":
			into, ok = decodeElements(a, m.Value, into, func(e *Entry, value *tree.Node) bool {
				e.Kind = Absent
				return e.decodeAddress(a, value.Text()) && value.Is(tree.String) && len(e.At) > 0
			})
		case "inserts":
			into, ok = decodeElements(a, m.Value, into, func(e *Entry, value *tree.Node) bool { return e.decodeInsert(a, value) })
		default:
			ok = false
		}
		if !ok {
			return nil, false
		}
	}
	replaced := object.Get("replaced")
	for i := range into[start:] {
		e := &into[start+i]
		e.Rules = object.Get("rules").Text()
		if replaced != nil && (e.Kind == Value || e.Kind == Absent) {
			e.Replaced = replaced.Get(e.At.Pointer()).Text()
		}
	}
	return into, true
}

func (e *Entry) decodeAddress(a *tree.Arena, pointer string) (ok bool) {
	a.Spend(0, segmentBytes*strings.Count(pointer, "/")+copies*len(pointer))
	e.At, ok = ParsePointer(pointer)
	return ok
}

func (e *Entry) decodeInsert(a *tree.Arena, value *tree.Node) bool {
	const least, withHidden = 3, 4
	parts := value.Elems()
	if len(parts) < least || len(parts) > withHidden || !parts[0].Is(tree.String) || !e.decodeAddress(a, parts[0].Text()) || !parts[1].Is(tree.Number) {
		return false
	}
	index, err := strconv.Atoi(string(parts[1].JSON()))
	e.Kind, e.Index, e.Value, e.Hidden = Insert, index, parts[2], len(parts) == withHidden
	return err == nil && index >= 0
}

func decodeMembers(a *tree.Arena, object *tree.Node, into []Entry, read func(*Entry, *tree.Node) bool) ([]Entry, bool) {
	into = grown(a, into, object.Len())
	for _, m := range object.Members() {
		var e Entry
		if !e.decodeAddress(a, m.Name) || !read(&e, m.Value) {
			return nil, false
		}
		into = append(into, e)
	}
	return into, object.Is(tree.Object)
}

func decodeElements(a *tree.Arena, list *tree.Node, into []Entry, read func(*Entry, *tree.Node) bool) ([]Entry, bool) {
	into = grown(a, into, list.Len())
	for _, value := range list.Elems() {
		var e Entry
		if !read(&e, value) {
			return nil, false
		}
		into = append(into, e)
	}
	return into, list.Is(tree.List)
}

// grown makes room for entries.
func grown(a *tree.Arena, entries []Entry, more int) []Entry {
	a.Spend(0, entryBytes*more)
	return slices.Grow(entries, more)
}
