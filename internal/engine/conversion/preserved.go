// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
)

// entry is a value of one version that is preserved in an annotation while the object is in
// another version.
type entry struct {
	// pointer is the place in the object: a JSON Pointer in which elements of a list with keys are
	// named by these, such as /spec/ports/[name="http"]/weight.
	pointer []byte
	kind    entryKind
	// value is JSON: nil for an absence, and a list of keys for an order.
	value []byte
	// images is a JSON list of the pointers of the fields that held an image of the value in the
	// other version, nil if there were none. For an element without keys, it is a digest.
	images []byte
	// anchor is the number of segments of the pointer that lead to the object without which the
	// entry is not restored, as text. Nil stands for the parent object.
	anchor []byte
	state  entryState
}

type entryKind byte

const (
	// valueEntry is the value of a field, or of an element without keys.
	valueEntry entryKind = iota
	// absenceEntry records that a field was absent that the way back would fill.
	absenceEntry
	// orderEntry is the order of a list that is a map in the other version.
	orderEntry
	// excludedEntry is an element that a rule keeps out of the other version, at its index.
	excludedEntry
)

// isData reports whether an entry of the kind has a part of the object, and not just says how it was.
func (k entryKind) isData() bool { return k == valueEntry || k == excludedEntry }

// entryState is what happened to an entry in a conversion to its version.
type entryState byte

const (
	// notLookedUp: no rule has looked the entry up.
	notLookedUp entryState = iota
	// consumed: the entry was restored, or live data superseded it.
	consumed
	// refused: the field does not allow the value.
	refused
	// deferred: the counterpart is preserved itself, so it was not deleted, or the field of another value
	// of the same rule does not allow that value.
	deferred
	// unedited: the element replaces the result of the rules, because that was not edited.
	unedited
)

// entries are those of one version. They are sorted by pointer and kind after reading and before
// writing.
type entries []entry

func compareEntries(a, b entry) int {
	return cmp.Or(bytes.Compare(a.pointer, b.pointer), cmp.Compare(a.kind, b.kind))
}

// find returns an entry of sorted entries, nil if there is none.
func (e entries) find(pointer []byte, kind entryKind) *entry {
	pos, found := slices.BinarySearchFunc(e, entry{pointer: pointer, kind: kind}, compareEntries)
	if !found {
		return nil
	}
	return &e[pos]
}

// withPrefix returns the sorted entries whose pointer begins with the prefix.
func (e entries) withPrefix(prefix []byte) entries {
	start, _ := slices.BinarySearchFunc(e, prefix, func(e entry, prefix []byte) int { return bytes.Compare(e.pointer, prefix) })
	end := start
	for end < len(e) && bytes.HasPrefix(e[end].pointer, prefix) {
		end++
	}
	return e[start:end]
}

// areSorted reports whether entries are in order and have no duplicates.
func (e entries) areSorted() bool {
	for i := 1; i < len(e); i++ {
		if compareEntries(e[i-1], e[i]) >= 0 {
			return false
		}
	}
	return true
}

// sorted sorts entries. Of duplicates, the last one stays.
func (e entries) sorted() entries {
	slices.SortStableFunc(e, compareEntries)
	unique := e[:0]
	for i, each := range e {
		if i+1 == len(e) || compareEntries(each, e[i+1]) != 0 {
			unique = append(unique, each)
		}
	}
	return unique
}

// preserve preserves a value of a scope that has no image in the other version, or an absence. Its
// anchor is that of the slot.
func (s *step) preserve(pc *pathContext, field *slot, kind entryKind, value []byte) {
	e := entry{pointer: s.pointer(pc, field.pointer), kind: kind, value: value, anchor: s.anchorOf(pc, field.path, len(field.anchor))}
	s.preserving = append(s.preserving, e)
	s.spendPlace(len(e.pointer))
}

// anchorOf returns the anchor of an entry, nil if it is the parent object.
func (s *step) anchorOf(pc *pathContext, path segments, anchor int) []byte {
	if anchor >= len(path)-1 {
		return nil
	}
	return s.anchor(pc, anchor)
}

// anchor returns the number of segments that lead to the object of the scope, and length more.
func (s *step) anchor(pc *pathContext, length int) []byte {
	start := len(s.text)
	s.text = pc.append(s.text)
	length += bytes.Count(s.text[start:], []byte("/"))
	s.text = strconv.AppendInt(s.text[:start], int64(length), 10)
	return s.textFrom(start)
}

// pointer returns the complete pointer of a place in a scope.
func (s *step) pointer(pc *pathContext, pointer string) []byte {
	start := len(s.text)
	s.text = append(pc.append(s.text), pointer...)
	return s.textFrom(start)
}

// preserved returns the preserved entry of a place in a scope, nil if there is none.
func (s *step) preserved(pc *pathContext, pointer string, kind entryKind) *entry {
	if len(s.restore) == 0 {
		return nil
	}
	start := len(s.text)
	found := s.restore.find(s.pointer(pc, pointer), kind)
	s.text = s.text[:start]
	return found
}

// hasValuesBelow reports whether a value is preserved below an object of a scope, and so would not
// be restored without that object: in this step since a number of entries, or earlier for a third
// version. An absence needs no object: without it, nothing is filled in.
func (s *step) hasValuesBelow(pc *pathContext, pointer string, since int) bool {
	start := len(s.text)
	prefix := append(s.pointer(pc, pointer), '/')
	defer func() { s.text = s.text[:start] }()
	isValue := func(e entry) bool { return e.kind != absenceEntry && bytes.HasPrefix(e.pointer, prefix) }
	return slices.ContainsFunc(s.preserving[since:], isValue) ||
		slices.ContainsFunc(s.foreignEntries, func(other entries) bool { return slices.ContainsFunc(other.withPrefix(prefix), isValue) })
}

// adoptFromSiblings moves the entries of fields that the target version shares with other spokes
// out of their annotations. The target's own entries win.
func (c *Converter) adoptFromSiblings(s *step, metadata *node, d *direction, targetData *preserved) error {
	annotations := metadata.get(&nameAnnotations)
	if annotations == nil {
		return nil
	}
	own := targetData.entries
	for _, name := range d.siblings {
		sibling := c.version(name)
		if sibling == nil || !c.siblingHolds(s, annotations, sibling, func(e entry) bool { return e.kind == valueEntry && d.shares(e.pointer, name) }) {
			continue
		}
		other := s.takePreserved(metadata, sibling, nil)
		rest := other.entries[:0:0]
		for _, e := range other.entries {
			switch {
			case e.kind != valueEntry || !d.shares(e.pointer, name):
				rest = append(rest, e)
			case own.find(e.pointer, e.kind) == nil:
				targetData.entries = append(targetData.entries, e)
			}
		}
		other.entries = rest
		if err := s.writePreserved(metadata, sibling, other); err != nil {
			return err
		}
	}
	targetData.entries = targetData.sorted()
	return nil
}

// supersedeInSiblings removes entries of other spokes for fields that they share with the source
// version, if that has just preserved a value.
func (c *Converter) supersedeInSiblings(s *step, metadata *node, d *direction) error {
	annotations := metadata.get(&nameAnnotations)
	if annotations == nil || len(s.preserving) == 0 {
		return nil
	}
	for _, name := range d.reverse.siblings {
		sibling := c.version(name)
		if sibling == nil || !c.siblingHolds(s, annotations, sibling, func(e entry) bool { return s.isSuperseded(d.reverse, &e, name) }) {
			continue
		}
		other := s.takePreserved(metadata, sibling, nil)
		other.entries = slices.DeleteFunc(other.entries, func(e entry) bool {
			return s.isSuperseded(d.reverse, &e, name)
		})
		if err := s.writePreserved(metadata, sibling, other); err != nil {
			return err
		}
	}
	return nil
}

// isSuperseded reports whether an entry of a sibling is for a field of which this conversion has
// preserved a value.
func (s *step) isSuperseded(reverse *direction, e *entry, sibling string) bool {
	return e.kind == valueEntry && reverse.shares(e.pointer, sibling) && s.preserving.find(e.pointer, valueEntry) != nil
}

// siblingHolds reports whether the annotations of a sibling hold one of some entries. If they do
// not, they stay unchanged.
func (c *Converter) siblingHolds(s *step, annotations *node, sibling *version, one func(entry) bool) bool {
	if annotations.get(&sibling.annotation) == nil {
		return false
	}
	other := s.peekPreserved(annotations, sibling)
	return slices.ContainsFunc(other.entries, one)
}

// shares reports whether the sibling has the field of an entry, too.
func (d *direction) shares(pointer []byte, sibling string) bool {
	for scope, rest := range d.scopesOf(pointer) {
		for i := range scope.arriving {
			if scope.arriving[i].pointer == string(rest) && slices.Contains(scope.arriving[i].siblings, sibling) {
				return true
			}
		}
	}
	return false
}
