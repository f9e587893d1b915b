// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import "strconv"

// place is where a scope stands in an object: the element of a list or map. The
// root's is nil. It is written as a JSON Pointer only where something is kept.
type place struct {
	above *place
	in    *collection
	// element is named by its key in a map, and by its keys in a list that has
	// such. Without an element there is an index.
	element *node
	index   int
}

// width is about how long the place of a list or map is, without its elements', as
// far as places are looked up at all: each element's is as long.
func (h *hop) width(at *place) int {
	if len(h.restore) == 0 {
		return 0
	}
	width := len(at.in.pointer)
	for above := at.above; above != nil; above = above.above {
		width += len(above.in.pointer)
		if above.element == nil {
			continue
		}
		width += len(above.element.key)
		for i := range above.in.keys {
			if value := above.element.get(&above.in.keys[i]); value != nil {
				width += len(value.text)
			}
		}
	}
	return width
}

// append writes a place as a JSON Pointer.
func (p *place) append(dst []byte) []byte {
	if p == nil {
		return dst
	}
	dst = append(p.above.append(dst), p.in.pointer...)
	dst = append(dst, '/')
	switch {
	case p.element == nil:
		return strconv.AppendInt(dst, int64(p.index), 10)
	case p.in.isMap:
		return append(dst, escapePointer(p.element.label())...)
	}
	return appendSelector(dst, p.element, p.in.keys)
}

// appendSelector names an element of a list by its keys: [name="http",protocol="TCP"].
func appendSelector(dst []byte, element *node, keys []name) []byte {
	for i := range keys {
		dst = append(dst, "[,"[min(i, 1)])
		dst = append(append(dst, escapePointer(keys[i].text)...), '=')
		if value := element.get(&keys[i]); value != nil {
			dst = append(dst, escapePointer(canonical(value))...)
		}
	}
	return append(dst, ']')
}
