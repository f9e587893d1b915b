// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

// defaultedField is the field of a default rule during a step.
type defaultedField struct {
	*defaultRule
	// previous is the value before the step, nil if the field was absent.
	previous *node
	// hadAnchor is true if the target version has the field, and the object above it existed
	// before the step.
	hadAnchor bool
}

// defaultOf returns the value of a default for the object, nil if it has none.
func (s *step) defaultOf(d *defaultRule) []byte {
	return s.valueOr(d.from, d.value)
}

// valueOr returns the value of the object's metadata under the name from, nil if it has none; without a name, the value.
func (s *step) valueOr(from string, value []byte) []byte {
	switch from {
	case nameName.text:
		return s.objectName
	case nameNamespace.text:
		return s.objectNamespace
	}
	return value
}

// isDefault reports whether a value is that of a default.
func (s *step) isDefault(value *node, d *defaultRule) bool {
	text := s.defaultOf(d)
	return text != nil && s.same(value, s.raw(text))
}

// takeDefaults removes the fields that only the source version has, and records which fields of
// the target version may be filled: an object that only exists for values of rules gets no
// defaults.
func (s *step) takeDefaults(d *direction, n *node) []defaultedField {
	fields := s.defaults.take(len(d.defaults))
	for i := range d.defaults {
		d := &d.defaults[i]
		fields[i].defaultRule = d
		if d.atSource {
			fields[i].previous = n.detach(d.path)
		} else {
			fields[i].hadAnchor = n.hasObject(d.anchor)
		}
	}
	return fields
}

// restoreOrFill restores what was preserved of the field, which may be its absence, or fills in
// the default.
func (d *defaultedField) restoreOrFill(s *step, n *node, pc *pathContext) {
	if d.atSource || !d.hadAnchor || n.find(d.path) != nil {
		return
	}
	absence := s.preserved(pc, d.pointer, absenceEntry)
	if absence != nil {
		absence.state = consumed
	}
	e := s.preserved(pc, d.pointer, valueEntry)
	switch {
	case e != nil && s.fits(&d.slot, e.value):
		e.state = consumed
		s.put(n, d.path, s.raw(e.value))
		return
	case e != nil:
		e.state = refused
	}
	if value := s.defaultOf(d.defaultRule); s.complete && absence == nil && value != nil {
		s.put(n, d.path, s.raw(value))
	}
}

// preserve preserves a value, or an absence, that the default would replace on the way back. The
// object must already be in its target form.
func (d *defaultedField) preserve(s *step, n *node, pc *pathContext) {
	if !d.atSource {
		return
	}
	value := s.defaultOf(d.defaultRule)
	fills := s.complete && n.hasObject(d.anchor) && value != nil
	switch {
	case d.previous == nil && fills:
		s.preserve(pc, &d.slot, absenceEntry, nil)
	case d.previous != nil && (!fills || !s.same(d.previous, s.raw(value))):
		s.preserve(pc, &d.slot, valueEntry, s.bytes(d.previous))
	}
}
