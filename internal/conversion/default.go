// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

// defaulted is a default rule during a step.
type defaulted struct {
	*filling
	// was is what was there, nil where the field was absent.
	was *node
	// there tells, where the field has its place on the other side, that the
	// object above it was there before the step.
	there bool
}

// takeDefaults takes the fields away that have no place on the other side, and
// looks which will be filled: an object that is there for nothing but what the
// rules put into it gets no defaults.
func (h *step) takeDefaults(w *direction, n *node) []defaulted {
	all := h.defaults.take(len(w.defaults))
	for i := range w.defaults {
		d := &w.defaults[i]
		all[i].filling = d
		if d.leaves {
			all[i].was = n.detach(d.path)
		} else {
			all[i].there = n.holds(d.anchor)
		}
	}
	return all
}

// fill brings back what was preserved, be it that there was nothing, and fills
// a field otherwise.
func (d *defaulted) fill(h *step, n *node, at *pathContext) {
	if d.leaves || !d.there || n.find(d.path) != nil {
		return
	}
	absence := h.preserved(at, d.pointer, anAbsence)
	if absence != nil {
		absence.fate = consumed
	}
	e := h.preserved(at, d.pointer, aValue)
	switch {
	case e != nil && h.fits(&d.slot, e.value):
		e.fate = consumed
		h.put(n, d.path, h.raw(e.value))
		return
	case e != nil:
		e.fate = refused
	}
	if h.whole && absence == nil {
		h.put(n, d.path, h.raw(d.value))
	}
}

// keep sets aside what coming back would not fill in by itself. The object must
// be as the other side will see it.
func (d *defaulted) keep(h *step, n *node, at *pathContext) {
	if !d.leaves {
		return
	}
	fills := h.whole && n.holds(d.anchor)
	switch {
	case d.was == nil && fills:
		h.keep = append(h.keep, entry{pointer: h.pointer(at, d.pointer), kind: anAbsence, anchor: h.anchorOf(at, d.path, len(d.anchor))})
	case d.was != nil && (!fills || !h.same(d.was, h.raw(d.value))):
		h.preserve(at, &d.slot, h.bytes(d.was))
	}
}
