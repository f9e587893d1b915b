// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

// elements looks into a list.
var elements = &look{each: &look{}}

// convert makes a value a list, or takes the first element of one. What is no
// list where there should be one has no image.
func (w *Wrap) convert(value *node, toHub bool) *node {
	if toHub == w.Hub {
		return &node{kind: array, elements: []*node{value}}
	}
	list, err := parse(value.append(nil), elements)
	if err != nil || list.kind != array || len(list.elements) == 0 {
		return nil
	}
	return list.elements[0]
}
