// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preserve

import (
	"slices"
	"strings"

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
	// isRest is true for an entry without those of its values that do not fit. The other version may show it although it
	// showed nothing of the entry.
	isRest bool
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
}

// Address leads to a value in an object. A segment names an element by what identifies it (names.go).
type Address []Segment

// with returns the address of what is in the value.
func (a Address) with(s Segment) Address { return append(slices.Clip(a), s) }

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

// parsePointer is the reverse of Pointer.
func parsePointer(pointer string) (at Address, ok bool) {
	if pointer == "" {
		return nil, true
	}
	rest, ok := strings.CutPrefix(pointer, "/")
	if !ok {
		return nil, false
	}
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

// Under returns the address with the path to instead of from, if it is that path or below it. Each segment of a path
// that is each stands for any element or member, and stays.
func (a Address) Under(from, to []string, each string) (moved Address, is bool) {
	if len(a) < len(from) || len(from) != len(to) {
		return nil, false
	}
	moved = slices.Clone(a)
	for i, name := range from {
		switch {
		case name == each:
		case a[i].Element || a[i].Name != name:
			return nil, false
		default:
			moved[i].Name = to[i]
		}
	}
	return moved, true
}
