// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import "slices"

// convert writes to y what the values of x are there. What would not convert
// back is preserved: alone where y has nothing of it, besides y's values otherwise.
func (t *trade) convert(x any, y map[string]any, s *kept, at string) (alone, besides *kept) {
	values := make([]any, len(t.from))
	for i, f := range t.from {
		values[i] = find(x, f.Path)
	}
	image := t.restored(t.forward(values), values, x, s, at)
	for i, value := range image {
		if value != none {
			put(y, t.to[i].Path, clone(value)) // entries may be merged into it
		}
	}
	if Equal(t.backward(image), values) {
		return newKept(), newKept()
	}
	keep := newKept()
	var images any
	if some(image) {
		images = pointers(t.to)
	}
	for i, value := range values {
		pointer := at + t.from[i].Path.pointer()
		_, isList := value.([]any)
		switch {
		case value == none:
		case t.order != nil && isList && some(image):
			keep.put(pointer, anOrder, t.order(value), images)
		default:
			keep.put(pointer, aValue, value, images)
		}
	}
	if some(image) {
		return newKept(), keep
	}
	for _, f := range t.from {
		keep.anchor(at, f.Path, aValue, f.Anchor)
	}
	return keep, newKept()
}

// taken are the fields without an image of the values of x.
func (t *trade) taken(x any, s *kept, at string) (fields []taken) {
	values := make([]any, len(t.from))
	for i, f := range t.from {
		values[i] = find(x, f.Path)
	}
	if !some(values) {
		return nil
	}
	for i, value := range t.restored(t.forward(values), values, x, s, at) {
		if value == none {
			fields = append(fields, taken{at + t.to[i].Path.pointer(), nil})
		}
	}
	return fields
}

// isImage reports whether one of the fields of x was an image of a value.
func (t *trade) isImage(images any) bool {
	list, _ := images.([]any)
	return slices.ContainsFunc(t.from, func(f field) bool { return slices.Contains(list, any(f.Path.pointer())) })
}

// pointers are those of fields in their scope.
func pointers(fields []field) any {
	list := []any{}
	for _, f := range fields {
		list = append(list, f.Path.pointer())
	}
	return list
}

// restored is what is preserved, if that converts to the values that are there now,
// and image otherwise. If none are there, the objects above it must be, and the
// values must have had no images that are gone now.
func (t *trade) restored(image, values []any, x any, s *kept, at string) []any {
	image = t.arranged(image, s, at)
	old := slices.Repeat([]any{none}, len(t.to))
	there, imaged := some(values), false
	for i := range t.to {
		f := &t.to[i]
		e := s.find(at+f.Path.pointer(), aValue)
		switch {
		case e == nil, t.arrange != nil && legacyOrder(e.value) != nil, !there && !isObject(find(x, f.Path[:f.Anchor])):
			continue
		case !f.accepts(e.value, s):
			e.fate = refused
			continue
		}
		e.fate, old[i] = settled, clone(e.value)
		if t.isImage(e.images) {
			imaged = true
			if !there && slices.ContainsFunc(t.from, func(f field) bool { return s.leaving.has(at + f.Path.pointer()) }) {
				e.fate = deferred
			}
		}
	}
	if some(old) && (!there && !imaged || Equal(t.backward(old), values)) {
		return old
	}
	return image
}

// arranged is a list in the order that is preserved of it. In format 1 that is
// where a value would be.
func (t *trade) arranged(image []any, s *kept, at string) []any {
	if t.arrange == nil {
		return image
	}
	pointer := at + t.to[0].Path.pointer()
	if e := s.find(pointer, aValue); e != nil && legacyOrder(e.value) != nil {
		e.fate = settled
		image = []any{t.arrange(image[0], legacyOrder(e.value))}
	}
	if e := s.find(pointer, anOrder); e != nil {
		e.fate = settled
		image = []any{t.arrange(image[0], e.value)}
	}
	return image
}

// legacyOrder is an order of format 1, or nil: an object that no list can be taken for.
func legacyOrder(value any) any {
	list, isList := find(value, path{"order"}).([]any)
	if !isList || len(value.(map[string]any)) != 1 {
		return nil
	}
	return list
}

// some reports whether there is any value.
func some(values []any) bool {
	return slices.ContainsFunc(values, func(value any) bool { return value != none })
}
