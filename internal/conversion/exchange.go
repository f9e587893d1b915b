// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"slices"
)

// exchanges takes the values of one side away and computes those of the other,
// those of one exchange behind those of another.
func (h *step) exchanges(w *direction, from parents, at *pathContext) []*node {
	count := 0
	for i := range w.exchanges {
		count += len(w.exchanges[i].to)
	}
	all := h.lists.take(count)[:0]
	for i := range w.exchanges {
		all = append(all, h.exchange(&w.exchanges[i], from, at)...)
	}
	return all
}

func (h *step) putImages(w *direction, to parents, images []*node) {
	for i := range w.exchanges {
		fields := w.exchanges[i].to
		for j, image := range images[:len(fields)] {
			if image != nil {
				to.put(h, &fields[j], image)
			}
		}
		images = images[len(fields):]
	}
}

// exchange takes the values of one side away and computes those of the other, or
// restores what was preserved if that is what the values are now. What would not
// come back the same is preserved.
func (h *step) exchange(e *exchange, from parents, at *pathContext) []*node {
	values := h.lists.take(len(e.from))
	for i := range e.from {
		values[i] = from.take(&e.from[i])
	}
	there := some(values)
	if !there && len(h.restore) == 0 {
		return h.lists.take(len(e.to))
	}
	images := e.forth(h, values)
	if len(h.restore) > 0 {
		images = h.revive(e, from[0], at, values, images, !there)
	}
	switch {
	case !there:
		if !some(images) {
			break
		}
		// They were preserved: they will be again, or they convert to values that were
		// not there, which then hold the objects around them in place.
		if back := e.back(h, images); some(back) {
			h.preserveAlone(e.from, back)
		} else {
			h.preserveAlone(e.to, images)
		}
	case !e.comesBack(h, images, values):
		h.setAside(e, values, images, at)
	}
	for i := range images {
		if there && images[i] == nil && h.restoring {
			h.noteTaken(h.pointer(at, e.to[i].pointer), nil)
		}
	}
	return images
}

// forth computes the values of the side that the step leads to, nil where there
// is none; back those of the side that it leaves.
func (e *exchange) forth(h *step, values []*node) []*node { return e.convert(h, values, e.toHub, e.to) }

func (e *exchange) back(h *step, images []*node) []*node {
	return e.convert(h, images, !e.toHub, e.from)
}

// comesBack reports whether images convert to the values. What a table translates
// becomes another node; all else stays the one that it was.
func (e *exchange) comesBack(h *step, images, values []*node) bool {
	if e.oneToOne && images[0] != nil && images[0] != values[0] {
		return true
	}
	return e.faithful && some(images) && !values[0].isNull() || h.sameAll(e.back(h, images), values)
}

// convert computes values for the fields. One that the API server would refuse
// there is none.
func (e *exchange) convert(h *step, values []*node, toHub bool, fields []slot) []*node {
	var images []*node
	switch {
	case e.format != nil && toHub:
		images = e.format.parse(h, values[0])
	case e.CEL != nil:
		images = e.programs.convert(h, values, toHub)
	default:
		images = h.lists.take(1)
		images[0] = e.convertOne(h, values, toHub)
	}
	for i, image := range images {
		if image != nil && (!fields[i].legal(image.text) || fields[i].notNull && image.isNull()) {
			images[i] = nil
		}
	}
	return images
}

// convertOne computes a single value. Null means no value everywhere.
func (e *exchange) convertOne(h *step, values []*node, toHub bool) *node {
	if e.format != nil {
		return e.format.write(h, values)
	}
	value := values[0]
	switch {
	case value == nil || value.isNull():
		return value
	case e.Wrap != nil:
		return e.Wrap.convert(h, value, toHub)
	case e.Cast != nil:
		return e.Cast.convert(h, value, toHub)
	case e.index != nil:
		return e.index.convert(h, value, toHub)
	case e.Common != nil && !e.Common.fits(&h.arena, h.bytes(value)):
		return nil
	}
	return translate(h, e.table, value, toHub)
}

// revive returns what was preserved of the fields of an exchange where it is what
// the values are now, and what they convert to otherwise. Alone tells that there
// are none: then the objects above the fields must be there.
func (h *step) revive(e *exchange, n *node, at *pathContext, values, images []*node, alone bool) []*node {
	if e.index != nil && e.toHub == e.index.Hub {
		images[0] = h.reordered(e, at, images[0])
	}
	found, imaged := h.lists.take(len(e.to)), false
	for i := range e.to {
		entry := h.preserved(at, e.to[i].pointer, aValue)
		if entry == nil || entry.fate == consumed {
			continue
		}
		if alone && !n.holds(e.to[i].anchor) {
			continue
		}
		if !h.fits(&e.to[i], entry.value) {
			entry.fate = refused
			continue
		}
		entry.fate, found[i] = consumed, h.raw(entry.value)
		if h.isImage(entry.images, e.from) {
			imaged = true
			if alone && h.leaves(e.from, at) {
				entry.fate = deferred
			}
		}
	}
	switch {
	case !some(found):
		return images
	case alone && !imaged, h.sameAll(e.back(h, found), values):
		// Values without an image that is gone now: there was no rule for them.
		return found
	}
	return images
}

// leaves reports whether one of some fields is preserved of the version that the object
// leaves.
func (h *step) leaves(fields []slot, at *pathContext) bool {
	return len(h.leaving) > 0 && slices.ContainsFunc(fields, func(f slot) bool {
		pointer := h.pointer(at, f.pointer)
		return h.leaving.find(pointer, aValue) != nil || h.leaving.around(pointer)
	})
}

// isImage reports whether one of some fields is an image of an entry.
func (h *step) isImage(images []byte, fields []slot) bool {
	if images == nil {
		return false
	}
	list, err := h.parse(images, elements)
	if err != nil {
		return false
	}
	for image := list.first; image != nil; image = image.next {
		if image.isText() && slices.ContainsFunc(fields, func(f slot) bool { return f.pointer == string(h.decode(image.text)) }) {
			return true
		}
	}
	return false
}

// reordered is a list in the order that was preserved of it.
func (h *step) reordered(e *exchange, at *pathContext, list *node) *node {
	order := h.preserved(at, e.to[0].pointer, anOrder)
	keys := []byte(nil)
	if order != nil {
		keys = order.value
	} else if order = h.preserved(at, e.to[0].pointer, aValue); order != nil {
		keys = h.legacyOrder(order.value)
	}
	if keys == nil {
		return list
	}
	order.fate = consumed
	if list == nil || list.kind != array {
		return list
	}
	return e.index.reorder(h, list, keys)
}

// legacyOrder is the order in a value of format 1, nil where it is a value.
func (h *step) legacyOrder(value []byte) []byte {
	held, err := h.parse(value, one)
	if err != nil {
		return nil
	}
	if order := held.get(&orderName); order != nil && order.kind == array && held.first == held.last {
		return order.text
	}
	return nil
}

// preserveAlone notes where there will be values that have no image on the other side now.
func (h *step) preserveAlone(fields []slot, values []*node) {
	for i, value := range values {
		if value != nil {
			h.alone = append(h.alone, fields[i].path)
		}
	}
}

// setAside preserves values that would not come back unchanged. Those that have an
// image on the other side come back with it, and need no object there to come
// back to. Of a list that has a map for an image, its order is all that is lost.
func (h *step) setAside(x *exchange, values, images []*node, at *pathContext) {
	for i, value := range values {
		if value == nil {
			continue
		}
		e := entry{pointer: h.pointer(at, x.from[i].pointer), value: h.bytes(value)}
		h.spend(placeUnits * len(e.pointer))
		if !some(images) {
			e.anchor = h.anchorOf(at, x.from[i].path, len(x.from[i].anchor))
			h.keep = append(h.keep, e)
			continue
		}
		if e.images = x.toPointers; x.index != nil && !value.isNull() {
			e.kind, e.value = anOrder, x.index.order(h, e.value)
		}
		h.imaged = append(h.imaged, e)
	}
}

// some reports whether there is any value.
func some(values []*node) bool {
	return slices.ContainsFunc(values, func(value *node) bool { return value != nil })
}

func (h *step) sameAll(a, b []*node) bool { return slices.EqualFunc(a, b, h.same) }

// same compares two values, or their absence.
func (h *step) same(a, b *node) bool {
	switch {
	case a == nil || b == nil:
		return a == b
	case a.kind == scalar || b.kind == scalar:
		return a.kind == b.kind && sameScalar(a.text, b.text)
	}
	return bytes.Equal(h.bytes(a), h.bytes(b)) || h.canonical(a) == h.canonical(b)
}
