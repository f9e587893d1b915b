// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import "slices"

// exchange takes the values of one side away and computes those of the other, or
// restores what was kept aside if that is what the values are now. What would not
// come back the same is kept aside.
func (h *hop) exchange(e *Exchange, n *node, at string) []*node {
	from, to := ends(h, e.Spoke, e.Hub)
	values := make([]*node, len(from))
	for i, field := range from {
		values[i] = n.detach(field.Path)
	}
	images := e.convert(values, h.toHub)
	if kept := h.keptValues(to, n, at, !some(values)); kept != nil && sameAll(e.convert(kept, !h.toHub), values) {
		images = kept
	}
	switch {
	case !some(values):
		h.leaveAlone(to, images)
	case !sameAll(e.convert(images, !h.toHub), values):
		for i, value := range values {
			if value != nil {
				h.setAside(at+from[i].Path.pointer(), value, some(images))
			}
		}
	}
	return images
}

// convert computes the values of the other side, nil where there is none. Null
// means no value everywhere.
func (e *Exchange) convert(values []*node, toHub bool) []*node {
	if e.Format != nil {
		return e.Format.convert(values, toHub)
	}
	return []*node{e.convertOne(values[0], toHub)}
}

func (e *Exchange) convertOne(value *node, toHub bool) *node {
	if value == nil || string(value.raw) == "null" {
		return value
	}
	switch {
	case e.Wrap != nil:
		return e.Wrap.convert(value, toHub)
	case e.Cast != nil:
		return e.Cast.convert(value, toHub)
	}
	return translate(e.Table, value, toHub)
}

// keptValues are the values that were kept aside together, nil where there are
// none. Where they are all that there is, the objects above them must be there.
func (h *hop) keptValues(fields []Field, n *node, at string, alone bool) []*node {
	var values []*node
	for i, field := range fields {
		raw, found := h.restore[at+field.Path.pointer()]
		if !found {
			continue
		}
		if alone && !n.holds(field.Path[:field.Anchor]) {
			return nil
		}
		if values == nil {
			values = make([]*node, len(fields))
		}
		values[i] = rawNode(raw)
	}
	return values
}

// leaveAlone notes where values come back without an image.
func (h *hop) leaveAlone(fields []Field, values []*node) {
	for i, value := range values {
		if value != nil {
			h.alone = append(h.alone, fields[i].Path)
		}
	}
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

// some reports whether there is any value.
func some(values []*node) bool {
	return slices.ContainsFunc(values, func(value *node) bool { return value != nil })
}

func sameAll(a, b []*node) bool { return slices.EqualFunc(a, b, same) }

// same compares two values, or their absence.
func same(a, b *node) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.raw != nil && b.raw != nil && sameScalar(a.raw, b.raw) || canonical(a) == canonical(b)
}
