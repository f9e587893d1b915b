// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

// value takes the value of one side away and computes that of the other, or
// restores what was kept aside if that is written the way that the value is now.
// What would not come back the same is kept aside.
func (h *hop) value(v *Value, n *node, at string) *node {
	from, to := ends(h, v.Spoke, v.Hub)
	_, anchor := ends(h, v.SpokeAnchor, v.HubAnchor)
	value := n.detach(from)
	image := v.convert(value, h.toHub)
	if raw, found := h.restore[at+to.pointer()]; found && (value != nil || n.holds(to[:anchor])) {
		if kept := rawNode(raw); same(v.convert(kept, !h.toHub), value) {
			image = kept
		}
	}
	if value == nil && image != nil {
		h.alone = append(h.alone, to)
	}
	if value != nil && !same(v.convert(image, !h.toHub), value) {
		h.setAside(at+from.pointer(), value, image != nil)
	}
	return image
}

// setAside keeps a value. One that has an image on the other side comes back
// with it, and needs no object there to come back to.
func (h *hop) setAside(pointer string, value *node, imaged bool) {
	if !imaged {
		h.keep.add(pointer, value)
		return
	}
	if h.imaged == nil {
		h.imaged = kept{}
	}
	h.imaged.add(pointer, value)
}

// convert computes the value of the other side, nil where it has none. Null
// means no value everywhere.
func (v *Value) convert(value *node, toHub bool) *node {
	if value == nil || string(value.raw) == "null" {
		return value
	}
	switch {
	case v.Wrap != nil:
		return v.Wrap.convert(value, toHub)
	case v.Cast != nil:
		return v.Cast.convert(value, toHub)
	}
	return v.translate(value, toHub)
}

// same compares two values, or their absence.
func same(a, b *node) bool {
	if a == nil || b == nil {
		return a == b
	}
	return sameText(a, b) || canonical(a) == canonical(b)
}
