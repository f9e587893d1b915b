// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"slices"
)

// exchanges takes the values of one side away and computes those of the other,
// those of one exchange behind those of another.
func (h *hop) exchanges(w *way, from parents, at *place) []*node {
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

func (h *hop) putImages(w *way, to parents, images []*node) {
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
// restores what was kept aside if that is what the values are now. What would not
// come back the same is kept aside.
func (h *hop) exchange(e *exchange, from parents, at *place) []*node {
	values := h.lists.take(len(e.from))
	for i := range e.from {
		values[i] = from.take(&e.from[i])
	}
	there := some(values)
	if !there && len(h.restore) == 0 {
		return h.lists.take(len(e.to))
	}
	images := e.forth(h, values)
	if kept := h.keptValues(e.to, from[0], at, !there); kept != nil {
		images = e.revive(h, kept, values, images)
	}
	switch {
	case !there:
		h.leaveAlone(e.to, images)
	case !e.comesBack(h, images, values):
		h.setAside(e, values, images, at)
	}
	return images
}

// forth computes the values of the side that the hop leads to, nil where there
// is none; back those of the side that it leaves.
func (e *exchange) forth(h *hop, values []*node) []*node { return e.convert(h, values, e.toHub, e.to) }

func (e *exchange) back(h *hop, images []*node) []*node {
	return e.convert(h, images, !e.toHub, e.from)
}

// comesBack reports whether images convert to the values.
func (e *exchange) comesBack(h *hop, images, values []*node) bool {
	return e.faithful && some(images) && !values[0].isNull() || h.sameAll(e.back(h, images), values)
}

// convert computes values for the fields. One that the API server would refuse
// there is none.
func (e *exchange) convert(h *hop, values []*node, toHub bool, fields []slot) []*node {
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
func (e *exchange) convertOne(h *hop, values []*node, toHub bool) *node {
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
	}
	return translate(h, e.table, value, toHub)
}

// keptValues are the values that were kept aside together, nil where there are
// none. Where they are all that there is, the objects above them must be there.
func (h *hop) keptValues(fields []slot, n *node, at *place, alone bool) []*node {
	if len(h.restore) == 0 {
		return nil
	}
	var values []*node
	for i := range fields {
		text := h.restored(at, "", fields[i].pointer)
		if text == nil {
			continue
		}
		if alone && !n.holds(fields[i].anchor) || !fields[i].legal(text) {
			return nil
		}
		if values == nil {
			values = h.lists.take(len(fields))
		}
		values[i] = h.raw(text)
	}
	return values
}

// revive returns what was kept aside if it is what the values are now, and what
// they convert to otherwise.
func (e *exchange) revive(h *hop, kept, values, images []*node) []*node {
	if e.index != nil && e.index.isOrder(kept[0], e.toHub) {
		if images[0] != nil && images[0].kind == array {
			images[0] = e.index.reorder(h, images[0], kept[0])
		}
		return images
	}
	if h.sameAll(e.back(h, kept), values) {
		return kept
	}
	return images
}

// leaveAlone notes where values come back without an image.
func (h *hop) leaveAlone(fields []slot, values []*node) {
	for i, value := range values {
		if value != nil {
			h.alone = append(h.alone, fields[i].path)
		}
	}
}

// setAside keeps values that would not come back as they are. Those that have an
// image on the other side come back with it, and need no object there to come
// back to. Of a list that has a map for an image, its order is all that is lost.
func (h *hop) setAside(e *exchange, values, images []*node, at *place) {
	for i, value := range values {
		if value == nil {
			continue
		}
		text := h.bytes(value)
		if e.index != nil && images[0] != nil && !value.isNull() {
			text = e.index.order(h, text)
		}
		aside := entry{h.pointer(at, "", e.from[i].pointer), text}
		if some(images) {
			h.imaged = append(h.imaged, aside)
		} else {
			h.keep = append(h.keep, aside)
		}
	}
}

// some reports whether there is any value.
func some(values []*node) bool {
	return slices.ContainsFunc(values, func(value *node) bool { return value != nil })
}

func (h *hop) sameAll(a, b []*node) bool { return slices.EqualFunc(a, b, h.same) }

// same compares two values, or their absence.
func (h *hop) same(a, b *node) bool {
	switch {
	case a == nil || b == nil:
		return a == b
	case a.kind == scalar || b.kind == scalar:
		return a.kind == b.kind && sameScalar(a.text, b.text)
	}
	return bytes.Equal(h.bytes(a), h.bytes(b)) || canonical(a) == canonical(b)
}
