// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/conversion-operator/conversion-operator/internal/conversion/shape"
)

// Rules, schemas and hubs change while objects have preserved data. An entry whose
// place the rules of now do not look up is not lost by that. Coming to its version,
// it becomes data where its field is one of the schema, and absent; it is superseded
// where there is live data; and otherwise it is carried on, as is an entry whose
// value the schema refuses.

// carry decides about the entries that no rule has looked up. Those that are
// carried on it returns, for the annotation of the version to which the step leads.
// Before is the object as it was at the version that it leaves.
func (h *step) carry(root *node, to *version, w *direction, before []byte) (*node, entries) {
	if len(h.restore)+len(h.merging) == 0 {
		return root, nil
	}
	u := h.undecided(w)
	if len(u.asked)+len(u.gone)+len(u.misfits)+len(h.merging) == 0 {
		return root, u.carried.sorted()
	}
	u.asked = append(u.asked, h.anchored(u.gone, before)...)
	whole, err := h.parse(h.bytes(root), everything)
	if err != nil {
		// A name is twice in what the rules do not look into.
		for _, e := range slices.Concat(u.asked, u.misfits, u.gone) {
			u.carried = append(u.carried, *e)
		}
		return root, u.carried.sorted()
	}
	m := newMerger(h, whole, w, h.restore)
	for _, e := range u.misfits {
		// A default that was filled in is no live data.
		if w.defaultAt(e.pointer, false) != nil || !m.covers(m.follow(whole, splitPointer(e.pointer)), e) {
			u.carried = append(u.carried, *e)
		}
	}
	if len(u.asked)+len(u.gone)+len(h.merging) == 0 {
		return root, u.carried.sorted()
	}
	u.carried = append(u.carried, h.mergeAll(m, to.shape, u)...)
	h.digestAgain(m, whole)
	return whole, u.carried.sorted()
}

// undecided are the entries that no rule has decided about.
type undecided struct {
	// carried are those to carry on. Asked are those that become data if they can, and
	// gone those whose object seems to have been deleted. The fields of misfits cannot
	// have their values.
	carried              entries
	asked, gone, misfits []*entry
}

func (h *step) undecided(w *direction) (u undecided) {
	for i := range h.restore {
		switch e := &h.restore[i]; {
		case e.fate == unclaimed && !bytes.HasPrefix(e.pointer, []byte("/")):
			u.carried = append(u.carried, *e)
		case e.fate == refused:
			u.misfits = append(u.misfits, e)
		case e.fate == unmatched, e.fate == unclaimed && !w.looksUp(e.pointer, e):
			u.asked = append(u.asked, e)
		case e.fate == deferred, e.fate == unclaimed && (h.leaving.around(e.pointer) || h.leaving.beside(e.pointer)):
			u.carried = append(u.carried, *e)
		case e.fate == unclaimed:
			u.gone = append(u.gone, e)
		}
	}
	return u
}

// mergeAll makes data of what is undecided, where it can, and returns what is carried on.
func (h *step) mergeAll(m *merger, s *shape.Schema, u undecided) (carried entries) {
	gone := slices.DeleteFunc(u.gone, func(e *entry) bool { return m.holder(e) != nil && !h.restore.around(e.pointer) })
	m.noteTaken()
	for i := range h.merging {
		m.merge(s, &h.merging[i], true)
	}
	for _, e := range u.asked {
		m.merge(s, e, false)
	}
	// What is around a place may not have been deleted, but preserved itself.
	for _, e := range gone {
		switch {
		case m.holder(e) != nil:
			m.merge(s, e, false)
		case h.restore.around(e.pointer):
			carried = append(carried, *e)
		}
	}
	return append(carried, m.left...)
}

// noteKeyless notes a list whose elements entries cannot name.
func (h *step) noteKeyless(pointer []byte) {
	if len(h.restore) > 0 {
		h.keyless = append(h.keyless, pointer)
	}
}

// isInKeyless reports whether a place is in a list whose elements entries cannot name.
func (h *step) isInKeyless(pointer []byte) bool {
	return slices.ContainsFunc(h.keyless, func(list []byte) bool {
		below, found := bytes.CutPrefix(pointer, list)
		return found && bytes.HasPrefix(below, []byte("/"))
	})
}

// anchored are the entries whose anchor was there before the conversion: other rules
// gave the object around their place another anchor, or none, and it was not deleted.
// So it is in a list whose elements lack their keys.
func (h *step) anchored(gone []*entry, before []byte) (held []*entry) {
	if len(gone) == 0 {
		return nil
	}
	whole, err := h.parse(before, everything)
	m := newMerger(h, whole, nil, nil)
	for _, e := range gone {
		if h.isInKeyless(e.pointer) {
			held = append(held, e)
			continue
		}
		if e.anchor == nil {
			continue
		}
		path := splitPointer(e.pointer)
		length, bad := strconv.Atoi(string(e.anchor))
		if err != nil || bad != nil || length < 0 || length >= len(path) {
			held = append(held, e)
		} else if found := m.follow(whole, path[:length]); found != nil && found.kind != scalar {
			held = append(held, e)
		}
	}
	return held
}

// holder is the object, or list, in which the place of an entry is.
func (m *merger) holder(e *entry) *node {
	path := splitPointer(e.pointer)
	return m.follow(m.root, path[:len(path)-1])
}

// digestAgain tells of preserved elements what they became, now that entries of the
// other version were merged into them.
func (h *step) digestAgain(m *merger, whole *node) {
	for i := range h.keep {
		e := &h.keep[i]
		if !isString(e.images) {
			continue
		}
		if element := m.follow(whole, splitPointer(e.pointer)); element != nil {
			e.images = h.digest(element)
		}
	}
}

// around reports whether an object around a place is among the entries: then it was
// not deleted.
func (e entries) around(pointer []byte) bool {
	for at := bytes.LastIndexByte(pointer, '/'); at > 0 && len(e) > 0; at = bytes.LastIndexByte(pointer[:at], '/') {
		if e.find(pointer[:at], aValue) != nil {
			return true
		}
	}
	return false
}

// beside reports whether something in the object directly around a place is among the
// entries: then that object was not deleted.
func (e entries) beside(pointer []byte) bool {
	at := bytes.LastIndexByte(pointer, '/')
	return at > 0 && len(e.below(pointer[:at+1])) > 0
}

// outlives are the entries of the version that the object leaves: its own, which
// were carried on so far. One is superseded where the object has live data for all of
// it now.
func (h *step) outlives(root *node, w *direction, leaving entries) (carried entries) {
	if len(leaving) == 0 {
		return nil
	}
	whole, err := h.parse(h.bytes(root), everything)
	m := newMerger(h, whole, w.back, nil)
	for _, e := range leaving {
		if err != nil || !bytes.HasPrefix(e.pointer, []byte("/")) {
			carried = append(carried, e)
			continue
		}
		live, filled := m.follow(whole, splitPointer(e.pointer)), w.defaultAt(e.pointer, true)
		if m.isPartOfLive(string(e.pointer)) {
			continue
		}
		if !m.covers(live, &e) || filled != nil && h.same(live, h.raw(filled.value)) {
			carried = append(carried, e)
		}
	}
	return carried
}

// anchorAs gives entries that are carried on the anchors of those that were preserved beside
// them, where those are further out: the version that the object comes to may lack the
// object around them.
func (e entries) anchorAs(preserved entries) {
	anchors := map[string][]byte{}
	for i := range preserved {
		p := &preserved[i]
		if holder := string(around(p.pointer)); p.anchor != nil && isFurtherOut(p.anchor, anchors[holder]) {
			anchors[holder] = p.anchor
		}
	}
	for i := range e {
		if anchor := anchors[string(around(e[i].pointer))]; anchor != nil && isFurtherOut(anchor, e[i].anchor) {
			e[i].anchor = anchor
		}
	}
}

// isFurtherOut reports whether an anchor is further out than another one, or than the
// object directly around the place, which nil is.
func isFurtherOut(anchor, other []byte) bool {
	length, bad := strconv.Atoi(string(anchor))
	than, err := strconv.Atoi(string(other))
	return bad == nil && (other == nil || err == nil && length < than)
}

// around is the pointer of the object directly around a place.
func around(pointer []byte) []byte { return pointer[:max(0, bytes.LastIndexByte(pointer, '/'))] }

// covers reports whether live data has all that an entry has, be it other data.
func (m *merger) covers(live *node, e *entry) bool {
	if live == nil || e.kind != aValue {
		return live != nil
	}
	value, err := m.h.parse(e.value, everything)
	return err != nil || m.has(live, value)
}

func (m *merger) has(live, value *node) bool {
	if live.kind != object || value.kind != object {
		return true
	}
	for member := value.first; member != nil; member = member.next {
		same := m.member(live, escapePointer(member.label()))
		if same == nil || !m.has(same, member) {
			return false
		}
	}
	return true
}
