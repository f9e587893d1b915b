// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"slices"
	"strconv"
)

// Rules, schemas and hubs change while objects have preserved data. An entry whose
// place the rules of now do not look up is not lost by that. Coming to its version,
// it becomes data where its field is one of the schema, and absent; it is superseded
// where there is live data; and otherwise it is carried on, as is an entry whose
// value the schema refuses.

// carry decides about the entries that no rule has looked up. Those that are
// carried on it returns, for the annotation of the version to which the hop leads.
// Before is the object as it was at the version that it leaves.
func (h *hop) carry(root *node, to *version, w *way, before []byte) (*node, entries) {
	if len(h.restore)+len(h.merging) == 0 {
		return root, nil
	}
	var carried entries
	var asked, gone, misfits []*entry
	for i := range h.restore {
		switch e := &h.restore[i]; {
		case e.fate == unclaimed && !bytes.HasPrefix(e.pointer, []byte("/")):
			carried = append(carried, *e)
		case e.fate == refused:
			misfits = append(misfits, e)
		case e.fate == unmatched, e.fate == unclaimed && !w.looksUp(e.pointer, e):
			asked = append(asked, e)
		case e.fate == deferred, e.fate == unclaimed && (h.leaving.around(e.pointer) || h.leaving.beside(e.pointer)):
			carried = append(carried, *e)
		case e.fate == unclaimed:
			gone = append(gone, e)
		}
	}
	if len(asked)+len(gone)+len(misfits)+len(h.merging) == 0 {
		return root, carried.sorted()
	}
	asked = append(asked, h.anchored(gone, before)...)
	whole, err := h.parse(h.bytes(root), everything)
	if err != nil {
		// A name is twice in what the rules do not look into.
		for _, e := range slices.Concat(asked, misfits, gone) {
			carried = append(carried, *e)
		}
		return root, carried.sorted()
	}
	m := newMerger(h)
	m.root, m.way, m.restore = whole, w, h.restore
	for _, e := range misfits {
		// A default that was filled in is no live data.
		if w.defaultAt(e.pointer, false) != nil || !m.covers(m.follow(whole, splitPointer(e.pointer)), e) {
			carried = append(carried, *e)
		}
	}
	if len(asked)+len(gone)+len(h.merging) == 0 {
		return root, carried.sorted()
	}
	gone = slices.DeleteFunc(gone, func(e *entry) bool { return m.holder(whole, e) != nil && !h.restore.around(e.pointer) })
	m.noteTaken(whole)
	for i := range h.merging {
		m.merge(whole, to.shape, &h.merging[i], true)
	}
	for _, e := range asked {
		m.merge(whole, to.shape, e, false)
	}
	// What is around a place may not have been deleted, but preserved itself.
	for _, e := range gone {
		switch {
		case m.holder(whole, e) != nil:
			m.merge(whole, to.shape, e, false)
		case h.restore.around(e.pointer):
			carried = append(carried, *e)
		}
	}
	h.digestAgain(m, whole)
	return whole, append(carried, m.left...).sorted()
}

// noteKeyless notes a list whose elements entries cannot name.
func (h *hop) noteKeyless(pointer []byte) {
	if len(h.restore) > 0 {
		h.keyless = append(h.keyless, pointer)
	}
}

// isInKeyless reports whether a place is in a list whose elements entries cannot name.
func (h *hop) isInKeyless(pointer []byte) bool {
	return slices.ContainsFunc(h.keyless, func(list []byte) bool {
		below, found := bytes.CutPrefix(pointer, list)
		return found && bytes.HasPrefix(below, []byte("/"))
	})
}

// anchored are the entries whose anchor was there before the conversion: other rules
// gave the object around their place another anchor, or none, and it was not deleted.
// So it is in a list whose elements lack their keys.
func (h *hop) anchored(gone []*entry, before []byte) (held []*entry) {
	if len(gone) == 0 {
		return nil
	}
	m := newMerger(h)
	whole, err := h.parse(before, everything)
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
func (m *merger) holder(root *node, e *entry) *node {
	path := splitPointer(e.pointer)
	return m.follow(root, path[:len(path)-1])
}

// digestAgain tells of preserved elements what they became, now that entries of the
// other version were merged into them.
func (h *hop) digestAgain(m *merger, whole *node) {
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
func (h *hop) outlives(root *node, w *way, leaving entries) (carried entries) {
	if len(leaving) == 0 {
		return nil
	}
	whole, err := h.parse(h.bytes(root), everything)
	m := newMerger(h)
	m.root, m.way = whole, w.back
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

// looksUp reports whether a way looks an entry up where the objects around its place
// are there. If it did not, they are gone, and what was preserved in them with them.
func (w *way) looksUp(pointer []byte, e *entry) bool {
	switch e.kind {
	case anAbsence:
		return w.fills(pointer) || w.looksInto(pointer, e)
	case anOrder:
		return w.exchangesTo(pointer, true) || w.looksInto(pointer, e)
	}
	return w.comes(pointer, e.value) || w.fills(pointer) || w.exchangesTo(pointer, false) || w.looksInto(pointer, e)
}

func (w *way) fills(pointer []byte) bool {
	return slices.ContainsFunc(w.defaults, func(d filling) bool { return !d.leaves && d.pointer == string(pointer) })
}

// defaultAt is the default rule of a field, nil where there is none: of the side that
// a way leaves, or of that to which it leads.
func (w *way) defaultAt(pointer []byte, leaves bool) *filling {
	for i := range w.defaults {
		if d := &w.defaults[i]; d.leaves == leaves && d.pointer == string(pointer) {
			return d
		}
	}
	for i := range w.collections {
		c := &w.collections[i]
		if _, rest := c.inElement(pointer); rest != nil {
			if d := c.way.defaultAt(rest, leaves); d != nil {
				return d
			}
		}
	}
	return nil
}

func (w *way) exchangesTo(pointer []byte, order bool) bool {
	for i := range w.exchanges {
		e := &w.exchanges[i]
		for j := range e.to {
			if e.to[j].pointer == string(pointer) {
				return !order || e.index != nil && e.toHub == e.index.Hub
			}
		}
	}
	return false
}

// comes reports whether a way restores a field that the other side lacks, or an
// object that both sides have and that has nothing in it.
func (w *way) comes(pointer, value []byte) bool {
	for i := range w.coming {
		c := &w.coming[i]
		if c.known == nil {
			if c.pointer == string(pointer) && c.comesAs(value) {
				return true
			}
			continue
		}
		name, below := bytes.CutPrefix(pointer, []byte(c.pointer+"/"))
		if below && bytes.IndexByte(name, '/') < 0 && !c.known.get(unescapePointer(string(name))) {
			return true
		}
	}
	for i := range w.shared {
		if w.shared[i].pointer == string(pointer) && isBare(value) && (isNull(value) || value[0] == '{' || value[0] == '[') {
			return true
		}
	}
	return false
}

// inElement splits a pointer into the element of a list or map and the place in that,
// nil where it leads to the element itself; both are nil where it leads elsewhere.
func (c *collection) inElement(pointer []byte) (element, rest []byte) {
	below, found := bytes.CutPrefix(pointer, []byte(c.pointer))
	if !found || len(below) == 0 || below[0] != '/' {
		return nil, nil
	}
	end := bytes.IndexByte(below[1:], '/') + 1
	if end == 0 {
		return below[1:], nil
	}
	return below[1:end], below[end:]
}

// looksInto reports whether a way looks an entry up in the elements of a list or map.
func (w *way) looksInto(pointer []byte, e *entry) bool {
	for i := range w.collections {
		c := &w.collections[i]
		element, rest := c.inElement(pointer)
		switch {
		case element == nil:
		case rest == nil:
			if !c.isMap && len(c.keys) == 0 && c.way.keeps && isIndex(element) {
				return true
			}
		case c.isMap || len(c.keys) > 0 && selectorKeys(string(element)).equal(c.keys):
			if c.way.looksUp(rest, e) {
				return true
			}
		}
	}
	return false
}

func isIndex(segment []byte) bool {
	index, err := strconv.Atoi(string(segment))
	return err == nil && index >= 0 && strconv.Itoa(index) == string(segment)
}
