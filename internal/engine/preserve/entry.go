// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preserve

import (
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// Kind says what an entry is about.
type Kind byte

const (
	// Value is a value that does not come back, or that another one comes back for.
	Value Kind = iota
	// Absent is the place of a value that comes back, and was not there.
	Absent
	// Insert is an element that does not come back, with its index in the list.
	Insert
	// Order is the order of elements that come back in another one.
	Order
)

// Entry is a difference between an object and what comes back of it.
type Entry struct {
	Kind Kind
	// At is the place: that of the list for Insert and Order.
	At Address
	// Value is that of a Value and an Insert.
	Value *tree.Node
	// Index is that of an inserted element.
	Index int
	// Order names the elements of a list, as segments of addresses do.
	Order []string
	// Replaced identifies what comes back in place of a Value or an Absent, empty if nothing does.
	Replaced string
	// Hidden is true if the other version got nothing from the entry when it was written.
	Hidden bool
	// Rules identifies those by which the entry was written.
	Rules string
	// Fate is what became of the entry in the last conversion to its version.
	Fate Fate
	// isSuperseded is true for an entry with which the object would not come back.
	isSuperseded bool
	// isRest is true for an entry without those of its values that do not fit. The other version may show it although it
	// showed nothing of the entry.
	isRest bool
	// of is the entry that this one is a part of, or stands for. isNamed is true if only names of elements differ.
	of      *Entry
	isNamed bool
}

// Fate says what became of an entry.
type Fate byte

const (
	// Undecided entries stay: judging them would have taken too much work.
	Undecided Fate = iota
	// Restored entries came back.
	Restored
	// Superseded entries would change what the other version has: it was edited there.
	Superseded
	// Gone is the fate of entries whose element or parent does not exist any more.
	Gone
	// Misfit entries have no place in the schema of their version, and stay.
	Misfit
)

// Segment is a step of an Address: a member, or an element of a list.
type Segment struct {
	Name    string
	Element bool
	// place is the number of the element, from 1, in the object that the entry was made from; 0 if that is unknown.
	place int
}

// key returns what identifies the segment.
func (s Segment) key() Segment { return Segment{Name: s.Name, Element: s.Element} }

// Address leads to a value in an object. A segment names an element by what identifies it (names.go).
type Address []Segment

// with returns the address of what is in the value.
func (a Address) with(s Segment) Address { return append(slices.Clip(a), s) }

// The memory of an entry, in as many slices as have it while it is judged, sorted and written; that of a segment of its
// address; and how often names are copied until an address is written.
const entryBytes, segmentBytes, copies = 5 * int(unsafe.Sizeof(Entry{})), 2 * int(unsafe.Sizeof(Segment{})), 4

// size is that of the names in an address, in bytes.
func (a Address) size() (bytes int) {
	for _, s := range a {
		bytes += len(s.Name)
	}
	return bytes
}

// compare orders addresses such that a value comes before what is in it.
func (a Address) compare(b Address) int {
	return slices.CompareFunc(a, b, func(x, y Segment) int {
		if x.Element != y.Element {
			if x.Element {
				return 1
			}
			return -1
		}
		return strings.Compare(x.Name, y.Name)
	})
}

// Place returns the address with the index of each element that has no keys, if it is known, and with that of an inserted
// element.
func (e *Entry) Place() Address {
	place := slices.Clone(e.At)
	for i, s := range place {
		if s.place > 0 && strings.ContainsAny(s.Name[:1], "=#") {
			place[i].Name = strconv.Itoa(s.place - 1)
		}
	}
	return e.withIndex(place)
}

// withIndex returns an address of an entry with the index of an inserted element.
func (e *Entry) withIndex(at Address) Address {
	if e.Kind == Insert {
		return at.with(Segment{Name: strconv.Itoa(e.Index), Element: true})
	}
	return at
}

// pointer returns the address as text, with the index of an inserted element.
func (e *Entry) pointer() string { return e.withIndex(e.At).Pointer() }

// HasValue reports whether an entry has a value, which would be lost without it.
func (e *Entry) HasValue() bool { return e.Kind == Value || e.Kind == Insert }

// Is reports whether two entries are about the same.
func (e *Entry) Is(other *Entry) bool {
	return e.Kind == other.Kind && e.Index == other.Index && e.At.Is(other.At)
}

// Is reports whether two addresses lead to the same place.
func (a Address) Is(other Address) bool { return a.compare(other) == 0 }

// isIn reports whether an address leads to a place or into it.
func (a Address) isIn(place Address) bool {
	return len(a) >= len(place) && a[:len(place)].Is(place)
}

var (
	escapes   = strings.NewReplacer("~", "~0", "/", "~1")
	unescapes = strings.NewReplacer("~1", "/", "~2", "[", "~0", "~")
)

// Pointer returns the address as a JSON Pointer, RFC 6901, in which an element is in brackets. The bracket at the
// beginning of a member's name is ~2.
func (a Address) Pointer() string {
	var text strings.Builder
	for _, s := range a {
		text.WriteByte('/')
		name := s.Name
		if strings.ContainsAny(name, "~/") {
			name = escapes.Replace(name)
		}
		switch {
		case s.Element:
			text.WriteString("[" + name + "]")
		case strings.HasPrefix(name, "["):
			text.WriteString("~2" + name[1:])
		default:
			text.WriteString(name)
		}
	}
	return text.String()
}

// ParsePointer is the reverse of Pointer.
func ParsePointer(pointer string) (at Address, ok bool) {
	if pointer == "" {
		return nil, true
	}
	rest, ok := strings.CutPrefix(pointer, "/")
	if !ok {
		return nil, false
	}
	at = make(Address, 0, strings.Count(pointer, "/"))
	for text := range strings.SplitSeq(rest, "/") {
		s := Segment{Name: text}
		if inner, is := strings.CutPrefix(text, "["); is {
			if s.Name, ok = strings.CutSuffix(inner, "]"); !ok {
				return nil, false
			}
			s.Element = true
		}
		if strings.Contains(s.Name, "~") {
			s.Name = unescapes.Replace(s.Name)
		}
		at = append(at, s)
	}
	return at, true
}

// entries returns pointers to entries.
func pointersTo(entries []Entry) []*Entry {
	all := make([]*Entry, len(entries))
	for i := range entries {
		all[i] = &entries[i]
	}
	return all
}

// IsBelow reports whether an address leads to a path or below it. Each segment of the path that is each stands for any
// element or member.
func (a Address) IsBelow(path []string, each string) bool {
	if len(a) < len(path) {
		return false
	}
	for i, name := range path {
		if name != each && (a[i].Element || a[i].Name != name) {
			return false
		}
	}
	return true
}

// Inside returns the path in the value at a place to which an address leads, empty if it is that place. It does not lead
// there if it is in an element of the value.
func (a Address) Inside(place Address) (path []string, is bool) {
	if !a.isIn(place) || slices.ContainsFunc(a[len(place):], func(s Segment) bool { return s.Element }) {
		return nil, false
	}
	for _, s := range a[len(place):] {
		path = append(path, s.Name)
	}
	return path, true
}

// AddressOf returns the address of a path without elements.
func AddressOf(path []string) Address {
	at := make(Address, len(path))
	for i, name := range path {
		at[i].Name = name
	}
	return at
}

// Rename returns the segment of an element with other names of its keys.
func (s Segment) Rename(name func(key string) string) Segment {
	keys, values := KeysIn(s.Name)
	if !s.Element || len(keys) == 0 {
		return s
	}
	var renamed strings.Builder
	for i, key := range keys {
		if i > 0 {
			renamed.WriteByte(',')
		}
		renamed.WriteString(name(key) + "=" + values[i])
	}
	return Segment{Name: renamed.String(), Element: true}
}
