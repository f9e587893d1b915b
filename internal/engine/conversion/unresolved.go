// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
)

// Rules, schemas and hubs change while objects have preserved data. An entry that the current
// rules do not look up must not be lost by that. When the object comes to the entry's version, the
// entry becomes live data if the schema has the field and the field is absent. It is dropped if
// there is live data. Otherwise, or if the schema refuses its value, it stays preserved.

// mergeUnresolved merges the entries that no rule has looked up. It returns those that stay
// preserved, for the annotation of the target version. before is the object in its source version.
func (s *step) mergeUnresolved(root *node, to *version, d *direction, before []byte) (*node, entries) {
	if len(s.restore)+len(s.merging) == 0 {
		return root, nil
	}
	u := s.unresolvedEntries(d)
	if len(u.mergeable)+len(u.deleted)+len(u.misfits)+len(s.merging) == 0 {
		return root, u.remaining.sorted()
	}
	u.mergeable = append(u.mergeable, s.withAnchor(u.deleted, before, d)...)
	parsed, err := s.parse(s.bytes(root), openAll)
	if err != nil {
		// Something that the rules do not look into has a duplicate name.
		for _, e := range slices.Concat(u.mergeable, u.misfits, u.deleted) {
			u.remaining = append(u.remaining, *e)
		}
		return root, u.remaining.sorted()
	}
	m := newMerger(s, parsed, d, s.restore)
	for _, e := range u.misfits {
		// A default that a rule filled in is not live data.
		if d.defaultAt(e.pointer, false) != nil || !m.coversEntry(m.live(e.pointer), e) {
			u.remaining = append(u.remaining, *e)
		}
	}
	if len(u.mergeable)+len(u.deleted)+len(s.merging) == 0 {
		return root, u.remaining.sorted()
	}
	u.remaining = append(u.remaining, s.mergeAll(m, to.namedShape(), u)...)
	s.updateDigests(m, to.ownNames)
	return parsed, u.remaining.sorted()
}

// unresolved are the entries that no rule has decided about.
type unresolved struct {
	// remaining stay preserved. mergeable become data where possible. deleted belong to objects
	// that seem to be deleted. misfits have values that their fields do not allow.
	remaining                   entries
	mergeable, deleted, misfits []*entry
}

func (s *step) unresolvedEntries(d *direction) (u unresolved) {
	for i := range s.restore {
		switch e := &s.restore[i]; {
		case e.state == notLookedUp && !bytes.HasPrefix(e.pointer, []byte("/")):
			u.remaining = append(u.remaining, *e)
		case e.state == refused:
			u.misfits = append(u.misfits, e)
		case e.state == notLookedUp && !d.looksUp(e.pointer, e):
			u.mergeable = append(u.mergeable, e)
		case e.state == deferred, e.state == notLookedUp && (s.sourceEntries.hasAncestorOf(e.pointer) || s.sourceEntries.hasNeighbourOf(e.pointer)):
			u.remaining = append(u.remaining, *e)
		case e.state == notLookedUp:
			u.deleted = append(u.deleted, e)
		}
	}
	return u
}

// mergeAll merges unresolved entries where possible, and returns those that stay preserved.
func (s *step) mergeAll(m *merger, schema *shape.Schema, u unresolved) (remaining entries) {
	deleted := slices.DeleteFunc(u.deleted, func(e *entry) bool { return m.parentOf(e) != nil && !s.restore.hasAncestorOf(e.pointer) })
	m.noteBlocked()
	for i := range s.merging {
		m.merge(schema, &s.merging[i], true)
	}
	for _, e := range u.mergeable {
		// Other fields of the parent object are preserved at the source, so that it is not there at all.
		if e.state == notLookedUp && m.parentOf(e) == nil && s.sourceEntries.hasNeighbourOf(e.pointer) {
			remaining = append(remaining, *e)
			continue
		}
		m.merge(schema, e, false)
	}
	// The parent object may not have been deleted, but be preserved itself.
	for _, e := range deleted {
		switch {
		case m.parentOf(e) != nil:
			m.merge(schema, e, false)
		case s.restore.hasAncestorOf(e.pointer):
			remaining = append(remaining, *e)
		}
	}
	return append(remaining, m.direction.targetPlaces.entries(m.remaining, true)...)
}

// noteKeyless records a list whose elements entries cannot name.
func (s *step) noteKeyless(pointer []byte) {
	if len(s.restore) > 0 {
		s.keyless = append(s.keyless, pointer)
	}
}

// isInKeyless reports whether the pointer leads into a list whose elements entries cannot name.
func (s *step) isInKeyless(pointer []byte) bool {
	return slices.ContainsFunc(s.keyless, func(list []byte) bool {
		below, found := bytes.CutPrefix(pointer, list)
		return found && bytes.HasPrefix(below, []byte("/"))
	})
}

// withAnchor returns the entries that were not deleted: their anchor existed before the
// conversion, but other rules have since given their parent object another anchor, or none; or
// they are in a list whose elements lack their keys.
func (s *step) withAnchor(deleted []*entry, before []byte, d *direction) (existing []*entry) {
	if len(deleted) == 0 {
		return nil
	}
	parsed, err := s.parse(before, openAll)
	m := newMerger(s, parsed, d.reverse, nil)
	for _, e := range deleted {
		if s.isInKeyless(e.pointer) {
			existing = append(existing, e)
			continue
		}
		if e.anchor == nil {
			continue
		}
		pointer, anchor := d.sourcePlaces.moved(e.pointer, e.anchor, false)
		path := splitPointer(pointer)
		length, bad := strconv.Atoi(string(anchor))
		if err != nil || bad != nil || length < 0 || length >= len(path) {
			existing = append(existing, e)
		} else if found := m.follow(parsed, path[:length]); found != nil && found.kind != scalar {
			existing = append(existing, e)
		}
	}
	return existing
}

// live returns the value at a pointer of the rules, nil if there is none.
func (m *merger) live(pointer []byte) *node {
	return m.follow(m.root, splitPointer(m.direction.targetPlaces.ofVersion(pointer)))
}

// parentOf returns the object or list that contains the place of an entry, nil if it does not
// exist.
func (m *merger) parentOf(e *entry) *node {
	path := splitPointer(m.direction.targetPlaces.ofVersion(e.pointer))
	return m.follow(m.root, path[:len(path)-1])
}

// updateDigests recomputes the digests of preserved elements after entries of the other version
// were merged into them. names are those of the target version.
func (s *step) updateDigests(m *merger, names *naming) {
	for i := range s.preserving {
		e := &s.preserving[i]
		if !isString(e.images) {
			continue
		}
		if element := m.live(e.pointer); element != nil {
			e.images = s.digest(element, names.at(m.direction.targetPlaces.ofVersion(e.pointer)))
		}
	}
}

// hasAncestorOf reports whether an object above the pointer is preserved itself. Then it was not
// deleted.
func (e entries) hasAncestorOf(pointer []byte) bool {
	for pos := bytes.LastIndexByte(pointer, '/'); pos > 0 && len(e) > 0; pos = bytes.LastIndexByte(pointer[:pos], '/') {
		if e.find(pointer[:pos], valueEntry) != nil {
			return true
		}
	}
	return false
}

// hasNeighbourOf reports whether another field of the same object is preserved. Then that object
// was not deleted.
func (e entries) hasNeighbourOf(pointer []byte) bool {
	pos := bytes.LastIndexByte(pointer, '/')
	return pos > 0 && len(e.withPrefix(pointer[:pos+1])) > 0
}

// stillPreserved returns the entries of the source version that stay preserved: those for which
// the object does not have complete live data now.
func (s *step) stillPreserved(root *node, d *direction, source entries) (remaining entries) {
	if len(source) == 0 {
		return nil
	}
	parsed, err := s.parse(s.bytes(root), openAll)
	m := newMerger(s, parsed, d.reverse, nil)
	for _, e := range source {
		if err != nil || !bytes.HasPrefix(e.pointer, []byte("/")) {
			remaining = append(remaining, e)
			continue
		}
		live, filled := m.live(e.pointer), d.defaultAt(e.pointer, true)
		if m.isPartOfLive(e.pointer) {
			continue
		}
		if !m.coversEntry(live, &e) || filled != nil && s.isDefault(live, filled) {
			remaining = append(remaining, e)
		}
	}
	return remaining
}

// adoptAnchors moves the anchors of entries further out, to the anchors that were just preserved
// in the same object: the target version may lack that object.
func (e entries) adoptAnchors(preserved entries) {
	anchors := map[string][]byte{}
	for i := range preserved {
		p := &preserved[i]
		if holder := string(parentPointer(p.pointer)); p.anchor != nil && isFurtherOut(p.anchor, anchors[holder]) {
			anchors[holder] = p.anchor
		}
	}
	for i := range e {
		if anchor := anchors[string(parentPointer(e[i].pointer))]; anchor != nil && isFurtherOut(anchor, e[i].anchor) {
			e[i].anchor = anchor
		}
	}
}

// isFurtherOut reports whether an anchor is further out than another one. A nil other is the
// object directly around the place.
func isFurtherOut(anchor, other []byte) bool {
	length, err1 := strconv.Atoi(string(anchor))
	otherLength, err2 := strconv.Atoi(string(other))
	return err1 == nil && (other == nil || err2 == nil && length < otherLength)
}

// parentPointer returns the pointer of the parent object.
func parentPointer(pointer []byte) []byte { return pointer[:max(0, bytes.LastIndexByte(pointer, '/'))] }

// coversEntry reports whether live data has every field that the entry has, with whatever values.
func (m *merger) coversEntry(live *node, e *entry) bool {
	if live == nil || e.kind != valueEntry {
		return live != nil
	}
	value, err := m.step.parse(e.value, openAll)
	return err != nil || m.coversValue(live, value)
}

func (m *merger) coversValue(live, value *node) bool {
	if live.kind != object || value.kind != object {
		return true
	}
	for member := value.first; member != nil; member = member.next {
		same := m.member(live, escapePointer(member.decodedName()))
		if same == nil || !m.coversValue(same, member) {
			return false
		}
	}
	return true
}
