// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"slices"
)

// A rule with WhenMissing computes values also from nothing, as a default does: if all of its source
// fields are absent, the object is complete, and the objects that hold the target fields exist. What
// it computes from nothing may convert back to values, so the absence is preserved. An absence, or a
// value that the way back computes from nothing, needs no other entry.

// absentFields are the source fields of an exchange, if all of them are absent.
type absentFields struct {
	*exchange
	// imaged is true if the target fields have values, and comeBack is true if those convert to values
	// of the source fields.
	imaged, comeBack bool
}

// computesMissing reports whether a rule computes values also from nothing.
func (e *exchange) computesMissing() bool { return e.CEL != nil && e.CEL.WhenMissing }

// mayFill reports whether the target fields may get values although all source fields are absent. A
// source value that is preserved itself is not absent.
func (s *step) mayFill(e *exchange, n *node, pc *pathContext) bool {
	return e.computesMissing() && n.hasAnchors(e.to) && !s.blocksFilling(s.sourceEntries, e.from, pc)
}

// blocksFilling reports whether a value of one of the fields stays preserved, or one in place of an
// object around it. Such an object itself does not: it has other fields.
func (s *step) blocksFilling(in entries, fields []slot, pc *pathContext) bool {
	return len(in) > 0 && slices.ContainsFunc(fields, func(f slot) bool {
		pointer := s.pointer(pc, f.pointer)
		if e := in.find(pointer, valueEntry); e != nil && e.state != consumed {
			return true
		}
		for pos := bytes.LastIndexByte(pointer, '/'); pos > 0; pos = bytes.LastIndexByte(pointer[:pos], '/') {
			if e := in.find(pointer[:pos], valueEntry); e != nil && e.value[0] != '{' {
				return true
			}
		}
		return false
	})
}

// hasAnchors reports whether the objects without which fields are not filled in exist.
func (n *node) hasAnchors(fields []slot) bool {
	for i := range fields {
		if !n.hasObject(fields[i].anchor) {
			return false
		}
	}
	return true
}

// fillsBack reports whether the way back computes the values from nothing. It computes nothing if a
// target value stays preserved.
func (s *step) fillsBack(e *exchange, n *node, pc *pathContext, values []*node) bool {
	return e.computesMissing() && n.hasAnchors(e.from) && !s.blocksFilling(s.restore, e.to, pc) && s.sameAll(e.backward(s, s.lists.take(len(e.to))), values)
}

// takeAbsence reports whether the target fields were absent when they were preserved. alone is that
// of restoreExchange.
func (s *step) takeAbsence(e *exchange, n *node, pc *pathContext, alone bool) bool {
	if !e.computesMissing() || alone && !n.hasObject(e.to[0].anchor) {
		return false
	}
	absence := s.preserved(pc, e.to[0].pointer, absenceEntry)
	if absence == nil {
		return false
	}
	absence.state = consumed
	return true
}

// noteAbsent notes that all source fields are absent, and which parent objects keep the images.
func (s *step) noteAbsent(e *exchange, images []*node) {
	imaged, comeBack := anyValue(images), false
	if imaged {
		// These values were preserved, or computed from nothing. Preserved ones will be preserved
		// again, or they convert to source values that did not exist, which then keep their parent
		// objects.
		back := e.backward(s, images)
		comeBack = anyValue(back)
		switch {
		case s.isFilled(e, images):
			for i := range e.to {
				s.withoutImage = append(s.withoutImage, e.to[i].anchor) // it is enough to compute them again
			}
		case comeBack:
			s.noteWithoutImage(e.from, back)
		default:
			s.noteWithoutImage(e.to, images)
		}
	}
	if e.computesMissing() {
		s.absent = append(s.absent, absentFields{e, imaged, comeBack})
	}
}

// isFilled reports whether the images are what a rule computes from nothing.
func (s *step) isFilled(e *exchange, images []*node) bool {
	return e.computesMissing() && s.sameAll(images, e.forward(s, s.lists.take(len(e.from))))
}

// preserveAbsences preserves that fields were absent which the way back computes. The object must
// already be in its target form.
func (s *step) preserveAbsences(n *node, pc *pathContext) {
	for i := range s.absent {
		a := &s.absent[i]
		if !a.imaged && n.hasAnchors(a.from) {
			a.comeBack = anyValue(a.backward(s, s.lists.take(len(a.to))))
		}
		if a.comeBack {
			s.preserve(pc, &a.from[0], absenceEntry, nil)
		}
	}
	clear(s.absent)
	s.absent = s.absent[:0]
}
