// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation"
)

// hop is one conversion between a spoke and the hub, and its memory.
type hop struct {
	arena
	// whole tells an object from a fragment of one, such as somebody applies.
	whole bool
	// dropsOverflow is what to do with more than an annotation can hold.
	dropsOverflow bool
	// restore is what was kept aside when the object left the version that it
	// now comes back to; keep is what the other side cannot express this time.
	restore, keep kept
	// imaged are the values of a scope that are kept and have an image all the same.
	imaged kept
	// alone are the places in a scope of values that came back without an image:
	// they will be kept again, and hold the objects around them in place.
	alone []steps
	// restorable are the fields of a scope that may come back.
	restorable []*coming
	// sharings and defaults are more memory, as that of the arena.
	sharings bump[shared]
	defaults bump[defaulted]

	outcome Outcome
}

var hops = sync.Pool{New: func() any { return new(hop) }}

func (h *hop) release() {
	h.begin()
	h.sharings.reset()
	h.defaults.reset()
	if h.reset() {
		hops.Put(h)
	}
}

// begin forgets what was kept.
func (h *hop) begin() {
	h.restore, h.keep, h.imaged, h.alone = h.restore[:0], h.keep[:0], h.imaged[:0], h.alone[:0]
}

// scope converts one object in place. All is read before anything is written, so
// that rules do not depend on their order. The element of a list of lists is a
// list: it has collections only.
func (h *hop) scope(w *way, n *node, at *place) {
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
		shared[i].tidy(h, n, at)
	}
	h.keep = append(h.keep, h.imaged...)
	h.imaged, h.alone = h.imaged[:0], h.alone[:0]
	for i := range filled {
		filled[i].keep(h, n, at)
	}
}

func (h *hop) takeMoved(w *way, from parents) []*node {
	moved := h.lists.take(len(w.moves))
	for i := range moved {
		moved[i] = from.take(&w.moves[i].from)
	}
	return moved
}

func (h *hop) putMoved(w *way, to parents, moved []*node) {
	for i, value := range moved {
		if value != nil {
			to.put(h, &w.moves[i].to, value)
		}
	}
}

// keepShells keeps objects that only this side has where they are empty.
// Otherwise what is in them says that they are there. The outer ones come first.
func (h *hop) keepShells(w *way, n *node, at *place) {
	for i := range slices.Backward(w.shells) {
		shell := n.find(w.shells[i].path)
		if shell != nil && shell.first == nil {
			h.keepAside(at, w.shells[i].pointer, h.bytes(n.detach(w.shells[i].path)))
		}
	}
}

// leave takes away what the other side lacks, and the shells that are empty now.
func (h *hop) leave(of *holder, n *node, at *place) {
	held := n.find(of.path)
	if held == nil || !held.isObject() {
		return
	}
	held.keepOnly(func(m *node) bool {
		switch leaves := of.members.of(m); {
		case leaves == 0 && (of.known == nil || of.known.of(m)), leaves == nulled && !m.isNull():
			return true
		case leaves == emptied:
			return m.first != nil
		}
		name := h.nameOf(m)
		start := len(h.text)
		h.text = append(append(at.append(h.text), of.pointer...), '/')
		h.text = appendPointerName(h.text, name)
		h.keep = append(h.keep, entry{h.since(start), h.bytes(m)})
		return false
	})
}

// openNulls makes the nulls objects again that server-side apply leaves of objects
// without fields, where something comes back into them.
func (h *hop) openNulls(w *way, n *node, at *place) {
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

func (h *hop) openNull(s *slot, n *node, at *place) {
	if s.nullAnchor || len(s.anchor) == 0 {
		return
	}
	above := n.find(s.anchor)
	if above != nil && above.isNull() && h.restored(at, "", s.pointer) != nil {
		above.kind, above.open, above.text = object, true, []byte("{}")
	}
}

// findRestorable notes the fields that may come back: the object above them is
// still there. One that rules make on the way does not count.
func (h *hop) findRestorable(w *way, n *node) {
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
func (h *hop) restoreLeaves(n *node, at *place) {
	for _, leaf := range h.restorable {
		if leaf.known != nil {
			h.restoreUnknown(leaf, n, at)
			continue
		}
		value := h.restored(at, "", leaf.pointer)
		if value == nil || n.find(leaf.path) != nil || !leaf.allows(value) {
			continue
		}
		h.put(n, leaf.path, h.raw(value))
	}
}

// allows reports whether a kept value may come back. Users can write what is
// kept: a shell must not bring fields that have owners of their own, and a label
// that is no string would make the object unreadable.
func (l *coming) allows(value []byte) bool {
	switch {
	case l.shell:
		return isBare(value)
	case l.null:
		return isNull(value)
	}
	return l.legal(value)
}

// legal reports whether the API server accepts a value: any as a field, and few
// as labels.
func (s *slot) legal(value []byte) bool {
	switch {
	case s.label:
		return isString(value) && len(validation.IsValidLabelValue(decodeString(value))) == 0
	case s.text:
		return isString(value)
	}
	return true
}

// isBare reports whether a value has nothing in it.
func isBare(value []byte) bool {
	n, err := parse(value, one)
	return err == nil && n.first == nil
}

// restoreUnknown brings the fields back that the schema allows without naming them.
func (h *hop) restoreUnknown(leaf *coming, n *node, at *place) {
	holder := n.find(leaf.path)
	if holder != nil && !n.holds(leaf.path) {
		return
	}
	prefix := append(h.pointer(at, "", leaf.pointer), '/')
	for _, e := range h.restore {
		escaped, under := bytes.CutPrefix(e.pointer, prefix)
		name := newName(unescapePointer(string(escaped)))
		if !under || bytes.IndexByte(escaped, '/') >= 0 || leaf.known.get(name.text) || holder != nil && holder.get(&name) != nil {
			continue
		}
		h.put(n, append(slices.Clip(leaf.path), name), h.raw(e.value))
	}
}

// collection converts the elements of a list or map.
func (h *hop) collection(c *collection, n *node, above *place) {
	held := n.find(c.path)
	if held == nil || held.first == nil || c.isMap != (held.kind == object) {
		return
	}
	at := h.places.one()
	at.above, at.in = above, c
	if !c.isMap && c.way.keeps && !h.haveKeys(c.keys, held) {
		h.anonymous(c, held, at)
		return
	}
	for element := held.first; element != nil; element = element.next {
		at.element = element
		h.scope(c.way, element, at)
	}
}
