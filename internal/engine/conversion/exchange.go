// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"slices"
)

// runExchanges removes the source fields of all exchanges and returns the values of the target
// fields, in the order of the exchanges.
func (s *step) runExchanges(d *direction, from parents, pc *pathContext) []*node {
	count := 0
	for i := range d.exchanges {
		count += len(d.exchanges[i].to)
	}
	all := s.lists.take(count)[:0]
	for i := range d.exchanges {
		all = append(all, s.runExchange(&d.exchanges[i], from, pc)...)
	}
	return all
}

func (s *step) putImages(d *direction, to parents, images []*node) {
	for i := range d.exchanges {
		fields := d.exchanges[i].to
		for j, image := range images[:len(fields)] {
			if image != nil {
				to.put(s, &fields[j], image)
			}
		}
		images = images[len(fields):]
	}
}

// runExchange removes the source fields of an exchange and returns the values of its target
// fields: the preserved ones if they still convert to the source values, and computed ones
// otherwise. It preserves source values that would not convert back to themselves, and notes absent
// ones that the way back may compute (missing.go).
func (s *step) runExchange(e *exchange, from parents, pc *pathContext) []*node {
	values := s.lists.take(len(e.from))
	for i := range e.from {
		values[i] = from.take(&e.from[i])
	}
	hasValues := anyValue(values)
	if !hasValues && len(s.restore) == 0 && !e.computesMissing() {
		return s.lists.take(len(e.to))
	}
	var images []*node
	if hasValues || s.mayFill(e, from[0], pc) {
		images = e.forward(s, values)
	} else {
		images = s.lists.take(len(e.to))
	}
	if len(s.restore) > 0 {
		images = s.restoreExchange(e, from[0], pc, values, images, !hasValues)
	}
	switch {
	case !hasValues:
		s.noteAbsent(e, images)
	case !anyValue(images) && s.fillsBack(e, from[0], pc, values):
		for i := range e.from {
			s.filledBack = append(s.filledBack, e.from[i].anchor)
		}
	case !anyValue(images), !e.comesBack(s, images, values):
		s.preserveValues(e, values, images, pc)
	}
	for i := range images {
		if hasValues && images[i] == nil && s.restoring {
			s.noteBlocked(s.pointer(pc, e.to[i].pointer), nil)
		}
	}
	return images
}

// forward computes the target values from the source values, nil for no value; backward computes
// the source values from the target values.
func (e *exchange) forward(s *step, values []*node) []*node {
	return e.convert(s, values, e.toHub, e.to)
}

func (e *exchange) backward(s *step, images []*node) []*node {
	return e.convert(s, images, !e.toHub, e.from)
}

// comesBack reports whether the images convert back to the values. A value that a table translates
// becomes another node; any other value stays the same node.
func (e *exchange) comesBack(s *step, images, values []*node) bool {
	if e.tableRoundTrips && images[0] != nil && images[0] != values[0] {
		return true
	}
	return e.roundTrips && anyValue(images) && !values[0].isNull() || s.sameAll(e.backward(s, images), values)
}

// convert computes values for the fields. A value that the API server would refuse becomes nil.
func (e *exchange) convert(s *step, values []*node, toHub bool, fields []slot) []*node {
	var images []*node
	switch {
	case e.format != nil && toHub:
		images = e.format.parse(s, values[0])
	case e.CEL != nil:
		images = e.programs.convert(s, values, toHub, e.CEL.WhenMissing && s.complete)
	default:
		images = s.lists.take(1)
		images[0] = e.convertOne(s, values, toHub)
	}
	for i, image := range images {
		if image != nil && (!fields[i].legal(image.text) || fields[i].notNull && image.isNull()) {
			images[i] = nil
		}
	}
	return images
}

// convertOne computes a single value. Null means no value.
func (e *exchange) convertOne(s *step, values []*node, toHub bool) *node {
	if e.format != nil {
		return e.format.write(s, values)
	}
	value := values[0]
	switch {
	case value == nil || value.isNull():
		return value
	case e.wrap != nil:
		return e.wrap.convert(s, value, toHub)
	case e.document != nil:
		return e.document.convert(s, value, toHub)
	case e.Cast != nil:
		return e.Cast.convert(s, value, toHub)
	case e.index != nil:
		return e.index.convert(s, value, toHub)
	case e.Common != nil && !e.Common.fits(&s.arena, s.bytes(value)):
		return nil
	}
	return e.translate(s, value, toHub)
}

// restoreExchange returns the preserved values of an exchange if they still convert to the source
// values, and the given images otherwise. alone is true if there are no source values: then the
// anchors of the fields must exist. A preserved absence is restored in the same way. If the schema refuses
// some of the values, and the others do not convert to the source values without them, all stay preserved.
func (s *step) restoreExchange(e *exchange, n *node, pc *pathContext, values, images []*node, alone bool) []*node {
	if e.index != nil && e.toHub == e.index.Hub {
		images[0] = s.restoreOrder(e, pc, images[0])
	}
	restored, imaged, misfit := s.lists.take(len(e.to)), false, false
	absent := s.takeAbsence(e, n, pc, alone)
	for i := range e.to {
		entry := s.preserved(pc, e.to[i].pointer, valueEntry)
		if entry == nil || entry.state == consumed {
			continue
		}
		if alone && !n.hasObject(e.to[i].anchor) {
			continue
		}
		if !s.fits(&e.to[i], entry.value) {
			entry.state, misfit = refused, true
			absent = absent || alone // a computed value would replace it
			continue
		}
		entry.state, restored[i] = consumed, s.raw(entry.value)
		if s.isImage(entry.images, e.from) {
			imaged = true
			if alone && s.isPreservedAtSource(e.from, pc) {
				entry.state = deferred
			}
		}
	}
	isImaged := func(images []*node) bool { return s.sameAll(e.backward(s, images), values) }
	switch {
	case anyValue(restored) && (alone && !imaged || isImaged(restored)):
		// They had no image when they were preserved, so a missing image does not mean deletion.
		return restored
	case misfit && !alone && anyValue(restored) && isImaged(s.preservedValues(e, pc)):
		s.deferValues(e, pc)
	case absent:
		if none := s.lists.take(len(e.to)); alone || isImaged(none) {
			return none
		}
	case imaged && images[0] != nil && restored[0] != nil:
		images[0] = e.patch(s, images[0], s.bytes(restored[0]))
	}
	return images
}

// preservedValues returns all preserved values of the target fields, also those that do not fit.
func (s *step) preservedValues(e *exchange, pc *pathContext) []*node {
	values := s.lists.take(len(e.to))
	for i := range e.to {
		if entry := s.preserved(pc, e.to[i].pointer, valueEntry); entry != nil {
			values[i] = s.raw(entry.value)
		}
	}
	return values
}

func (s *step) deferValues(e *exchange, pc *pathContext) {
	for i := range e.to {
		if entry := s.preserved(pc, e.to[i].pointer, valueEntry); entry != nil {
			entry.state = deferred
		}
	}
}

// patch returns a document, or a list or map of objects, with what the preserved one has beyond the
// values of the other side. Any other value stays the same.
func (e *exchange) patch(s *step, value *node, preserved []byte) *node {
	switch {
	case e.wrap != nil && e.wrap.Field != "" && e.toHub == e.wrap.Hub:
		return e.wrap.patch(s, value, preserved)
	case e.index != nil && e.index.Value != "" && e.toHub == e.index.Hub:
		return e.index.patch(s, value, preserved)
	case e.document != nil && e.toHub == e.Cast.Hub:
		return e.document.patch(s, value, preserved)
	}
	return value
}

// isPreservedAtSource reports whether the source version has preserved one of the fields.
func (s *step) isPreservedAtSource(fields []slot, pc *pathContext) bool {
	return len(s.sourceEntries) > 0 && slices.ContainsFunc(fields, func(f slot) bool {
		pointer := s.pointer(pc, f.pointer)
		return s.sourceEntries.find(pointer, valueEntry) != nil || s.sourceEntries.hasAncestorOf(pointer)
	})
}

// isImage reports whether one of the fields is among the images of an entry.
func (s *step) isImage(images []byte, fields []slot) bool {
	if images == nil {
		return false
	}
	list, err := s.parse(images, openElements)
	if err != nil {
		return false
	}
	for image := list.first; image != nil; image = image.next {
		if image.isText() && slices.ContainsFunc(fields, func(f slot) bool { return f.image == string(s.decode(image.text)) }) {
			return true
		}
	}
	return false
}

// restoreOrder returns the list in the order that was preserved.
func (s *step) restoreOrder(e *exchange, pc *pathContext, list *node) *node {
	order := s.preserved(pc, e.to[0].pointer, orderEntry)
	if order == nil {
		return list
	}
	order.state = consumed
	if list == nil || list.kind != array {
		return list
	}
	return e.index.reorder(s, list, order.value)
}

// noteWithoutImage records the paths of values that have no image in the other version.
func (s *step) noteWithoutImage(fields []slot, values []*node) {
	for i, value := range values {
		if value != nil {
			s.withoutImage = append(s.withoutImage, fields[i].path)
		}
	}
}

// preserveValues preserves values that would not convert back to themselves. A value with an image
// needs no anchor: it is restored together with its image. Of a list whose image is a map with all
// of its objects, only the order is preserved.
func (s *step) preserveValues(x *exchange, values, images []*node, pc *pathContext) {
	for i, value := range values {
		if value == nil {
			continue
		}
		e := entry{pointer: s.pointer(pc, x.from[i].pointer), value: s.bytes(value)}
		s.spendPlace(len(e.pointer))
		if !anyValue(images) {
			e.anchor = s.anchorOf(pc, x.from[i].path, len(x.from[i].anchor))
			s.preserving = append(s.preserving, e)
			continue
		}
		if e.images = x.toPointers; x.index != nil && !value.isNull() {
			if order := x.index.order(s, e.value); order != nil {
				e.kind, e.value = orderEntry, order
			}
		}
		s.withImage = append(s.withImage, e)
	}
}

// anyValue reports whether any value is not nil.
func anyValue(values []*node) bool {
	return slices.ContainsFunc(values, func(value *node) bool { return value != nil })
}

func (s *step) sameAll(a, b []*node) bool { return slices.EqualFunc(a, b, s.same) }

// same reports whether two values are equal, or both nil.
func (s *step) same(a, b *node) bool {
	switch {
	case a == nil || b == nil:
		return a == b
	case a.kind == scalar || b.kind == scalar:
		return a.kind == b.kind && sameScalar(a.text, b.text)
	}
	return bytes.Equal(s.bytes(a), s.bytes(b)) || s.canonical(a) == s.canonical(b)
}
