// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preserve

import (
	"bytes"
	"cmp"
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
//	absent     what comes back in place of values that were absent, by their addresses
//	replaced   what comes back in place of values, by their addresses
//	orders     the elements of lists in their order, by the addresses of the lists
//	older      an object with entries that were written by other rules
//	dropped    the addresses of the first values that annotations had no room for
//	unreadable other text that was found in the place of the data
//
// or, of a long text, format and
//
//	deflate    the text, compressed (RFC 1951), as base64
//
// An address is a JSON Pointer in which an element is in brackets (names.go). That of an inserted element ends with its index.
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

// Sorted returns the entries, sorted by address and index, in memory of their own if there are several.
func (d Data) Sorted() []Entry {
	if len(d.Entries) < 2 {
		return slices.Clip(d.Entries)
	}
	sorted := slices.Clone(d.Entries)
	slices.SortStableFunc(sorted, func(a, b Entry) int { return cmp.Or(a.At.compare(b.At), cmp.Compare(a.Index, b.Index)) })
	return sorted
}

// Encode returns the text of data. It uses the memory of into.
func (d Data) Encode(into []byte) []byte {
	text := appendEntries(strconv.AppendInt(append(into[:0], `{"format":`...), Format, 10), d.Sorted())
	if len(d.Dropped) > 0 {
		text = appendTexts(append(text, `,"dropped":`...), d.Dropped)
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
	size := times*(len(tree.Quote(nil, e.pointer()))+around) + len(e.Rules) + len(e.Replaced)
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
// memory of entries. Of several entries for the same, the first one stays, and elements with the same index follow each other.
func appendEntries(text []byte, entries []Entry) []byte {
	if len(entries) == 0 {
		return text
	}
	text = tree.Quote(append(text, `,"rules":`...), entries[0].Rules)
	same, older := entries[:0], []Entry(nil)
	for _, e := range entries {
		before := before(same, &e)
		switch {
		case e.Rules != entries[0].Rules:
			older = append(older, e)
		case before != nil && e.Kind != Insert:
		case before != nil:
			e.Index = max(e.Index, before.Index+1)
			fallthrough
		default:
			same = append(same, e)
		}
	}
	replaced := func(text []byte, e *Entry) []byte { return tree.Quote(text, e.Replaced) }
	text = appendGroup(text, "hidden", same, func(e *Entry) bool { return e.HasValue() && e.Hidden }, appendValue)
	text = appendGroup(text, "values", same, func(e *Entry) bool { return e.HasValue() && !e.Hidden }, appendValue)
	text = appendGroup(text, "absent", same, func(e *Entry) bool { return e.Kind == Absent }, replaced)
	text = appendGroup(text, "replaced", same, func(e *Entry) bool { return e.Kind == Value && e.Replaced != "" }, replaced)
	text = appendGroup(text, "orders", same, func(e *Entry) bool { return e.Kind == Order }, func(text []byte, e *Entry) []byte { return appendTexts(text, e.Order) })
	if len(older) > 0 {
		inner := appendEntries(nil, older)
		text = append(append(append(text, `,"older":{`...), inner[1:]...), '}')
	}
	return text
}

// before returns the last of sorted entries that has the kind and the address of another one, nil if there is none.
func before(entries []Entry, e *Entry) *Entry {
	for i := len(entries) - 1; i >= 0 && entries[i].At.Is(e.At); i-- {
		if entries[i].Kind == e.Kind {
			return &entries[i]
		}
	}
	return nil
}

// appendGroup appends a member with some of the entries, if there are any.
func appendGroup(text []byte, name string, entries []Entry, is func(*Entry) bool, appendOne func([]byte, *Entry) []byte) []byte {
	begin := `,"` + name + `":{`
	for i := range entries {
		if e := &entries[i]; is(e) {
			text = appendOne(append(tree.Quote(append(text, begin...), e.pointer()), ':'), e)
			begin = ","
		}
	}
	if begin == "," {
		text = append(text, '}')
	}
	return text
}

func appendValue(text []byte, e *Entry) []byte { return e.Value.Append(text) }

func appendTexts(text []byte, texts []string) []byte {
	text = append(text, '[')
	for i, one := range texts {
		if i > 0 {
			text = append(text, ',')
		}
		text = tree.Quote(text, one)
	}
	return append(text, ']')
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
			data.Entries = data.Sorted()
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
		case "unreadable", "rules":
			ok = m.Value.Is(tree.String)
		case "replaced":
			ok = m.Value.Is(tree.Object)
		case "hidden", "values", "absent", "orders":
			into, ok = decodeGroup(a, m, into)
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
		if replaced != nil && e.Kind == Value {
			e.Replaced = replaced.Get(e.At.Pointer()).Text()
		}
	}
	return into, true
}

func decodeGroup(a *tree.Arena, group tree.Member, into []Entry) (entries []Entry, ok bool) {
	members := group.Value.Members()
	a.Spend(0, entryBytes*len(members))
	into = slices.Grow(into, len(members))
	for _, m := range members {
		var e Entry
		if !e.decode(a, group.Name, m) {
			return nil, false
		}
		into = append(into, e)
	}
	return into, group.Value.Is(tree.Object)
}

func (e *Entry) decode(a *tree.Arena, group string, m tree.Member) (ok bool) {
	a.Spend(0, segmentBytes*strings.Count(m.Name, "/")+copies*len(m.Name))
	if e.At, ok = ParsePointer(m.Name); !ok || len(e.At) == 0 {
		return false
	}
	switch group {
	case "absent":
		e.Kind, e.Replaced = Absent, m.Value.Text()
		return m.Value.Is(tree.String)
	case "orders":
		e.Kind = Order
		for _, name := range m.Value.Elems() {
			e.Order = append(e.Order, name.Text())
		}
		return m.Value.Is(tree.List)
	}
	e.Value, e.Hidden = m.Value, group == "hidden"
	const bits = 31
	last := len(e.At) - 1
	if index, err := strconv.ParseUint(e.At[last].Name, 10, bits); err == nil && e.At[last].Element {
		e.Kind, e.At, e.Index = Insert, e.At[:last], int(index)
	}
	return true
}
