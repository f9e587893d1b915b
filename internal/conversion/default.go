// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

// defaulted is a default rule during a hop.
type defaulted struct {
	*Default
	// leaves tells the hop in which the field has no place any more.
	leaves bool
	// value is what was there, nil where the field was absent.
	value *node
	// there tells, in the other hop, that the object above the field was there
	// before the hop.
	there bool
}

// defaults takes the fields away that have no place on the other side, and looks
// which will be filled: an object that is there for nothing but what the rules
// put into it gets no defaults.
func (h *hop) defaults(scope *Scope, n *node) []defaulted {
	all := make([]defaulted, len(scope.Defaults))
	for i := range scope.Defaults {
		d := defaulted{Default: &scope.Defaults[i]}
		if d.leaves = d.Hub != h.toHub; d.leaves {
			d.value = n.detach(d.Path)
		} else {
			d.there = n.holds(d.Path[:d.Anchor])
		}
		all[i] = d
	}
	return all
}

// fill brings back what was kept aside, be it that there was nothing, and fills
// a field otherwise.
func (d *defaulted) fill(h *hop, n *node, at string) {
	if d.leaves || !d.there || n.find(d.Path) != nil {
		return
	}
	pointer := at + d.Path.pointer()
	_, wasAbsent := h.restore[absent+pointer]
	switch raw, found := h.restore[pointer]; {
	case found:
		n.put(d.Path, rawNode(raw))
	case h.whole && !wasAbsent:
		n.put(d.Path, rawNode(d.Value))
	}
}

// keep sets aside what coming back would not fill in by itself. The object must
// be as the other side will see it.
func (d *defaulted) keep(h *hop, n *node, at string) {
	if !d.leaves {
		return
	}
	pointer := at + d.Path.pointer()
	fills := h.whole && n.holds(d.Path[:d.Anchor])
	switch {
	case d.value == nil && fills:
		h.keep[absent+pointer] = []byte("true")
	case d.value != nil && (!fills || canonical(d.value) != canonical(rawNode(d.Value))):
		h.keep.add(pointer, d.value)
	}
}
