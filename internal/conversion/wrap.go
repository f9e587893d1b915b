// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

// elements looks into a list.
var elements = &look{each: &look{}}

// convert makes a value a list, or takes the first element of one. What is no
// list where there should be one has no image.
func (w *Wrap) convert(h *hop, value *node, toHub bool) *node {
	if toHub == w.Hub {
		list := h.node()
		list.kind, list.open = array, true
		list.add(value)
		return list
	}
	list, err := h.parse(h.bytes(value), elements)
	if err != nil || list.kind != array {
		return nil
	}
	return list.first
}
