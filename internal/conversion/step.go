// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"slices"
	"sync"
)

// step is one conversion between a spoke and the hub, and its memory.
type step struct {
	arena
	// whole tells an object from a fragment of one, such as a client applies.
	whole bool
	// dropsOverflow is what to do with more than an annotation can hold.
	dropsOverflow bool
	// truncates tells that what annotations have no room for is left out in the end.
	truncates bool
	// restore is what was preserved when the object left the version that it now
	// comes back to, sorted; keep is what the other side cannot express this time.
	restore, keep entries
	// imaged are the values of a scope that are preserved and have an image all the same.
	imaged entries
	// merging are entries of elements without keys that no element converts to any
	// more, at the indexes of those that still are what they became.
	merging entries
	// lenient lets preserved values come back that their fields cannot have, and
	// stretched tells that there was one.
	lenient, stretched bool
	// refusesStatus is that of the Ruleset.
	refusesStatus bool
	// keyless are the pointers of lists whose elements lack the keys that they should
	// have, and of lists that should be maps, or the other way round.
	keyless [][]byte
	// taken are fields that are absent at the version to which the step leads, as it cannot
	// have what they are at the version that it leaves. They are noted where restoring.
	taken     []takenField
	restoring bool
	// leaving are the sorted entries of the version that the object leaves.
	leaving entries
	// others are those, and the sorted entries of third versions.
	others []entries
	// alone are the places in a scope of values that came back without an image, or of
	// what such convert to: they hold the objects around them in place.
	alone []segments
	// restorable are the fields of a scope that may come back.
	restorable []*coming
	// sharings and defaults are more memory, as that of the arena.
	sharings bump[shared]
	defaults bump[defaulted]
	// meter counts the work, own where the step is not part of another.
	meter *meter
	own   meter

	outcome Outcome
}

var stepPool = sync.Pool{New: func() any { return new(step) }}

func (h *step) release() {
	h.begin()
	h.meter, h.own = nil, meter{}
	h.sharings.reset()
	h.defaults.reset()
	if h.reset() {
		stepPool.Put(h)
	}
}

// begin forgets what was preserved.
func (h *step) begin() {
	h.restore, h.keep, h.imaged, h.alone = h.restore[:0], h.keep[:0], h.imaged[:0], h.alone[:0]
	h.merging, h.keyless, h.leaving, h.others = h.merging[:0], h.keyless[:0], nil, nil
	h.taken, h.restoring = h.taken[:0], false
}

// scope converts one object in place. All is read before anything is written, so
// that rules do not depend on their order. The element of a list of lists is a
// list: it has collections only.
func (h *step) scope(w *direction, n *node, at *pathContext) {
	if h.spend(scopeUnits) {
		return
	}
	since := len(h.keep)
	for i := range w.collections {
		h.collection(&w.collections[i], n, at)
	}
	if !n.isObject() {
		return
	}
	for _, path := range w.drops {
		n.detach(path)
	}
	if !w.keeps {
		h.putMoved(w, h.parents(w, n), h.takeMoved(w, h.parents(w, n)))
		return
	}
	h.openNulls(w, n, at)
	shared := h.shared(w, n)
	h.findRestorable(w, n)
	h.keepShells(w, n, at)
	from := h.parents(w, n)
	moved := h.takeMoved(w, from)
	images := h.exchanges(w, from, at)
	filled := h.takeDefaults(w, n)
	for i := range w.holders {
		h.leave(&w.holders[i], n, at)
	}
	to := h.parents(w, n)
	h.putMoved(w, to, moved)
	h.putImages(w, to, images)
	h.restoreLeaves(n, at)
	for i := range filled {
		filled[i].fill(h, n, at)
	}
	for i := range shared {
		shared[i].tidy(h, n, at, since)
	}
	h.keep = append(h.keep, h.imaged...)
	h.imaged, h.alone = h.imaged[:0], h.alone[:0]
	for i := range filled {
		filled[i].keep(h, n, at)
	}
}

func (h *step) takeMoved(w *direction, from parents) []*node {
	moved := h.lists.take(len(w.moves))
	for i := range moved {
		moved[i] = from.take(&w.moves[i].from)
	}
	return moved
}

func (h *step) putMoved(w *direction, to parents, moved []*node) {
	for i, value := range moved {
		if value != nil {
			to.put(h, &w.moves[i].to, value)
		}
	}
}

// keepShells keeps objects that only this side has where they are empty.
// Otherwise what is in them says that they are there. The outer ones come first.
func (h *step) keepShells(w *direction, n *node, at *pathContext) {
	for i := range slices.Backward(w.shells) {
		shell := n.find(w.shells[i].path)
		if shell != nil && shell.first == nil {
			h.preserve(at, &w.shells[i], h.bytes(n.detach(w.shells[i].path)))
		}
	}
}

// leave takes away what the other side lacks, and the shells that are empty now.
func (h *step) leave(of *holder, n *node, at *pathContext) {
	held := n.find(of.path)
	if held == nil || !held.isObject() {
		return
	}
	held.keepOnly(func(m *node) bool {
		leaves := of.members.of(m)
		switch {
		case leaves.when == 0 && (of.known == nil || of.known.of(m)), leaves.when == nulled && !m.isNull(),
			leaves.when == unlikeCommon && of.common.of(m).fits(&h.arena, h.bytes(m)):
			return true
		case leaves.when == emptied:
			return m.first != nil
		}
		name := h.nameOf(m)
		start := len(h.text)
		h.text = append(append(at.append(h.text), of.pointer...), '/')
		h.text = appendPointerName(h.text, name)
		pointer := h.since(start)
		h.spend(placeUnits * len(pointer))
		anchor := of.anchored
		if leaves.when != 0 {
			anchor = leaves.anchor
		}
		e := entry{pointer: pointer, value: h.bytes(m)}
		if anchor < len(of.path) {
			e.anchor = h.anchor(at, anchor)
		}
		h.keep = append(h.keep, e)
		if leaves.when == nulled || leaves.when == unlikeCommon {
			h.noteTaken(pointer, of.common.of(m))
		}
		return false
	})
}

// openNulls makes the nulls objects again that server-side apply leaves of objects
// without fields, where something comes back into them.
func (h *step) openNulls(w *direction, n *node, at *pathContext) {
	if len(h.restore) == 0 {
		return
	}
	for i := range w.coming {
		h.openNull(&w.coming[i].slot, n, at)
	}
	for i := range w.exchanges {
		for j := range w.exchanges[i].to {
			h.openNull(&w.exchanges[i].to[j], n, at)
		}
	}
	for i := range w.defaults {
		h.openNull(&w.defaults[i].slot, n, at)
	}
}

func (h *step) openNull(s *slot, n *node, at *pathContext) {
	if s.nullAnchor || len(s.anchor) == 0 {
		return
	}
	above := n.find(s.anchor)
	if above != nil && above.isNull() && h.preserved(at, s.pointer, aValue) != nil {
		above.kind, above.open, above.text = object, true, []byte("{}")
	}
}

// findRestorable notes the fields that may come back: the object above them is
// still there. One that rules make on the way does not count.
func (h *step) findRestorable(w *direction, n *node) {
	h.restorable = h.restorable[:0]
	if len(h.restore) == 0 {
		return
	}
	for i := range w.coming {
		if n.holds(w.coming[i].anchor) {
			h.restorable = append(h.restorable, &w.coming[i])
		}
	}
}

// restoreLeaves brings back what the other side lacked and has no value now.
func (h *step) restoreLeaves(n *node, at *pathContext) {
	for _, leaf := range h.restorable {
		if leaf.known != nil {
			h.restoreUnknown(leaf, n, at)
			continue
		}
		e := h.preserved(at, leaf.pointer, aValue)
		switch {
		case e == nil:
		case n.find(leaf.path) != nil && leaf.comesAs(e.value):
			e.fate = consumed
		case !leaf.comesAs(e.value):
			// It was preserved when the field was another one (carried.go).
		case h.fits(&leaf.slot, e.value):
			e.fate = consumed
			h.put(n, leaf.path, h.raw(e.value))
		default:
			e.fate = refused
		}
	}
}

// restoreUnknown brings the fields back that the schema allows without naming them.
func (h *step) restoreUnknown(leaf *coming, n *node, at *pathContext) {
	holder := n.find(leaf.path)
	if holder != nil && !n.holds(leaf.path) {
		h.noteKeyless(h.pointer(at, leaf.pointer))
		return
	}
	prefix := append(h.pointer(at, leaf.pointer), '/')
	below := h.restore.below(prefix)
	if len(below) == 0 {
		return
	}
	there := map[string]bool{}
	if holder != nil {
		for m := holder.first; m != nil; m = m.next {
			there[m.label()] = true
		}
	}
	for i := range below {
		e, escaped := &below[i], below[i].pointer[len(prefix):]
		name := unescapePointer(string(escaped))
		switch {
		case e.kind != aValue || bytes.IndexByte(escaped, '/') >= 0 || leaf.known.get(name):
		case there[name]:
			e.fate = consumed
		case leaf.shape != nil && (leaf.shape.Field(name) == nil || !h.fitsShape(leaf.shape.Field(name), e.value)):
			e.fate = refused
		default:
			e.fate = consumed
			if holder == nil {
				holder = h.makeObject(n, leaf.path)
			}
			m := h.raw(e.value)
			key := newName(name)
			m.key, m.mark = key.quoted, key.mark
			holder.add(m)
		}
	}
}

// collection converts the elements of a list or map.
func (h *step) collection(c *collection, n *node, above *pathContext) {
	held := n.find(c.path)
	if held == nil || held.kind == scalar || c.common != nil && !c.common.fits(&h.arena, h.bytes(held)) {
		return
	}
	if c.isMap != (held.kind == object) {
		h.noteKeyless(h.pointer(above, c.pointer))
		return
	}
	if held.first == nil {
		return
	}
	at := h.places.one()
	at.above, at.in = above, c
	width := h.width(at)
	if !c.isMap && c.way.keeps && !h.haveKeys(c.keys, held) {
		if len(c.keys) > 0 {
			h.noteKeyless(h.pointer(above, c.pointer))
		}
		h.anonymous(c, held, at)
		return
	}
	for element := held.first; element != nil; element = element.next {
		if at.element = element; h.spend(width / widthUnits) {
			return
		}
		h.scope(c.way, element, at)
	}
}
