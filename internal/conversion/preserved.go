// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
)

// entry is one value of a version, preserved in an annotation while the object is
// at another version.
type entry struct {
	// pointer is the place in an object of its version: a JSON Pointer in which an
	// element of a list with keys is named by them, as in
	// /spec/ports/[name="http"]/weight.
	pointer []byte
	kind    entryKind
	// value is JSON. That of an absence is empty, and that of an order a list of keys.
	value []byte
	// images are the fields of the other version that had an image of the value when
	// it was preserved, a JSON list of pointers; nil where none had.
	images []byte
	// anchor is how many segments of the pointer lead to the object without which the
	// entry does not come back, a number; nil where that is the one directly around it.
	anchor []byte
	fate   fate
}

// entryKind says what an entry is about.
type entryKind byte

const (
	// aValue is the value of a field, or of an element without keys.
	aValue entryKind = iota
	// anAbsence tells that a field was absent that coming back would fill.
	anAbsence
	// anOrder is the order of a list that is a map in the other version.
	anOrder
)

// fate is what became of an entry in a conversion to its version.
type fate byte

const (
	// unclaimed is an entry that no rule has looked up.
	unclaimed fate = iota
	// consumed is an entry that was restored, or superseded by live data.
	consumed
	// refused is an entry whose value is none that its field can have.
	refused
	// deferred is an entry whose counterpart is preserved itself, and so was not removed.
	deferred
	// unmatched is an element of format 1 to which no element converts: one was edited,
	// or rules have changed.
	unmatched
	// unedited is an element that takes the place of what the rules made: the one that
	// it became still is what it was then.
	unedited
)

// entries are those of one version. They are sorted by pointer and kind once they
// are read, or about to be written.
type entries []entry

func compareEntries(a, b entry) int {
	return cmp.Or(bytes.Compare(a.pointer, b.pointer), cmp.Compare(a.kind, b.kind))
}

// find returns an entry of sorted ones, nil where there is none.
func (e entries) find(pointer []byte, kind entryKind) *entry {
	at, found := slices.BinarySearchFunc(e, entry{pointer: pointer, kind: kind}, compareEntries)
	if !found {
		return nil
	}
	return &e[at]
}

// below are the sorted entries whose pointers begin with a prefix.
func (e entries) below(prefix []byte) entries {
	start, _ := slices.BinarySearchFunc(e, prefix, func(e entry, prefix []byte) int { return bytes.Compare(e.pointer, prefix) })
	end := start
	for end < len(e) && bytes.HasPrefix(e[end].pointer, prefix) {
		end++
	}
	return e[start:end]
}

// areSorted reports whether entries are in order, and none is there twice.
func (e entries) areSorted() bool {
	for i := 1; i < len(e); i++ {
		if compareEntries(e[i-1], e[i]) >= 0 {
			return false
		}
	}
	return true
}

// sorted orders entries. Of those that were preserved twice, the latter counts.
func (e entries) sorted() entries {
	slices.SortStableFunc(e, compareEntries)
	kept := e[:0]
	for i, each := range e {
		if i+1 == len(e) || compareEntries(each, e[i+1]) != 0 {
			kept = append(kept, each)
		}
	}
	return kept
}

// preserve notes a value of a scope that has no image in the other version. Anchor is
// that of Leaf.
func (h *step) preserve(at *pathContext, f *slot, value []byte) {
	h.keep = append(h.keep, entry{pointer: h.pointer(at, f.pointer), value: value, anchor: h.anchorOf(at, f.path, len(f.anchor))})
	h.spend(placeUnits * len(h.keep[len(h.keep)-1].pointer))
}

// anchorOf writes the anchor of an entry, where it is not the object directly around it.
func (h *step) anchorOf(at *pathContext, path segments, anchor int) []byte {
	if anchor >= len(path)-1 {
		return nil
	}
	return h.anchor(at, anchor)
}

// anchor writes how many segments of a pointer lead to a place of a scope.
func (h *step) anchor(at *pathContext, length int) []byte {
	start := len(h.text)
	h.text = at.append(h.text)
	length += bytes.Count(h.text[start:], []byte("/"))
	h.text = strconv.AppendInt(h.text[:start], int64(length), 10)
	return h.since(start)
}

// pointer writes a place in a scope.
func (h *step) pointer(at *pathContext, pointer string) []byte {
	start := len(h.text)
	h.text = append(at.append(h.text), pointer...)
	return h.since(start)
}

// preserved looks up what was preserved of a place in a scope, nil where there is nothing.
func (h *step) preserved(at *pathContext, pointer string, kind entryKind) *entry {
	if len(h.restore) == 0 {
		return nil
	}
	start := len(h.text)
	found := h.restore.find(h.pointer(at, pointer), kind)
	h.text = h.text[:start]
	return found
}

// holdsPlace reports whether something below an object of a scope is preserved,
// which comes back only where the object is still there: in this conversion since
// a count of entries, or of a third version in one before.
func (h *step) holdsPlace(at *pathContext, pointer string, since int) bool {
	start := len(h.text)
	prefix := append(h.pointer(at, pointer), '/')
	defer func() { h.text = h.text[:start] }()
	under := func(e entry) bool { return bytes.HasPrefix(e.pointer, prefix) }
	return slices.ContainsFunc(h.keep[since:], under) || slices.ContainsFunc(h.others, func(other entries) bool { return len(other.below(prefix)) > 0 })
}

// adopt takes the entries of fields that the version to which a step leads has in
// common with others from their annotations. Its own count more.
func (c *Converter) adopt(h *step, metadata *node, w *direction, arriving *preserved) error {
	annotations := metadata.get(&nameAnnotations)
	if annotations == nil {
		return nil
	}
	own := arriving.entries
	for _, name := range w.siblings {
		sibling := c.version(name)
		if sibling == nil || !c.holds(h, annotations, sibling, func(e entry) bool { return e.kind == aValue && w.shares(e.pointer, name) }) {
			continue
		}
		other := h.take(metadata, sibling, nil)
		rest := other.entries[:0:0]
		for _, e := range other.entries {
			switch {
			case e.kind != aValue || !w.shares(e.pointer, name):
				rest = append(rest, e)
			case own.find(e.pointer, e.kind) == nil:
				arriving.entries = append(arriving.entries, e)
			}
		}
		if err := h.write(metadata, sibling, preserved{rest, other.unreadable}); err != nil {
			return err
		}
	}
	arriving.entries = arriving.sorted()
	return nil
}

// supersede takes from the annotations of others the fields that the version that a step
// leaves has in common with them, where it had a value of its own.
func (c *Converter) supersede(h *step, metadata *node, w *direction) error {
	annotations := metadata.get(&nameAnnotations)
	if annotations == nil || len(h.keep) == 0 {
		return nil
	}
	for _, name := range w.back.siblings {
		sibling := c.version(name)
		if sibling == nil || !c.holds(h, annotations, sibling, func(e entry) bool { return h.isLive(w.back, &e, name) }) {
			continue
		}
		other := h.take(metadata, sibling, nil)
		other.entries = slices.DeleteFunc(other.entries, func(e entry) bool {
			return h.isLive(w.back, &e, name)
		})
		if err := h.write(metadata, sibling, other); err != nil {
			return err
		}
	}
	return nil
}

// isLive reports whether an entry of a sibling is of a field of which this conversion
// has preserved a value.
func (h *step) isLive(back *direction, e *entry, sibling string) bool {
	return e.kind == aValue && back.shares(e.pointer, sibling) && h.keep.find(e.pointer, aValue) != nil
}

// holds reports whether the annotations of a sibling hold one of some entries. If they
// do not, they stay as they were written.
func (c *Converter) holds(h *step, annotations *node, sibling *version, one func(entry) bool) bool {
	if annotations.get(&sibling.annotation) == nil && annotations.get(&sibling.legacy) == nil {
		return false
	}
	other := h.peek(annotations, sibling)
	return slices.ContainsFunc(other.entries, one)
}

// shares reports whether an entry is of a field that a sibling has, too.
func (w *direction) shares(pointer []byte, sibling string) bool {
	for scope, rest := range w.scopesOf(pointer) {
		for i := range scope.coming {
			if scope.coming[i].pointer == string(rest) && slices.Contains(scope.coming[i].siblings, sibling) {
				return true
			}
		}
	}
	return false
}
