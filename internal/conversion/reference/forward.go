// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import "slices"

// convert converts x, which is at the pointer at, and restores s, the preserved data of y. It
// preserves what y would not convert back to: that is the law.
func (d *direction) convert(x any, s *preserved, at string) (y any, keep *preserved) {
	y, keep = d.forward(x, s, at)
	if !isObject(x) {
		return y, keep
	}
	x = d.openNulls(d.without(x), s, at)
	d.preserveDefaulted(x, y, keep, at)
	d.preserveMissing(x, y, s, keep, at)
	d.preserveEmpty(x, y, keep, at)
	return y, keep
}

// preserveDefaulted preserves fields that converting back would set to another default.
func (d *direction) preserveDefaulted(x, y any, keep *preserved, at string) {
	again, _ := d.back.forward(y, keep, at)
	for _, f := range d.emptied {
		pointer := at + f.path.pointer()
		switch value := find(x, f.path); {
		case Equal(value, find(again, f.path)):
		case value == none:
			keep.put(pointer, anAbsence, nil, nil)
			keep.anchor(at, f.path, anAbsence, f.anchor)
		default:
			keep.put(pointer, aValue, value, nil)
			keep.anchor(at, f.path, aValue, f.anchor)
		}
	}
}

// preserveMissing preserves that x has none of the values of a rule if converting back would set one.
func (d *direction) preserveMissing(x, y any, s, keep *preserved, at string) {
	for i := range d.exchanges {
		t := &d.exchanges[i]
		values := t.values(x)
		if !t.whenMissing || anyPresent(values) {
			continue
		}
		image := t.restored(t.image(values, x, s, at), values, x, s, at)
		if first := t.from[0]; (anyPresent(image) || haveAnchors(y, t.from)) && anyPresent(t.backward(image)) {
			keep.put(at+first.Path.pointer(), anAbsence, nil, nil)
			keep.anchor(at, first.Path, anAbsence, first.Anchor)
		}
	}
}

// preserveEmpty preserves empty objects that would not come back, and lists in the place of such
// objects. An object that comes back with members has its value.
func (d *direction) preserveEmpty(x, y any, keep *preserved, at string) {
	again, _ := d.back.forward(y, keep, at)
	for _, l := range d.lost {
		if value := find(x, l.Path); l.Shell && hasNoMembers(value) && !Equal(value, find(again, l.Path)) {
			keep.put(at+l.Path.pointer(), aValue, value, nil)
			keep.anchor(at, l.Path, aValue, l.Anchor)
		}
	}
	for _, o := range d.shared {
		now := find(again, o.path)
		value := find(x, o.path)
		if _, isList := value.([]any); (isList || hasNoMembers(value)) && !Equal(value, now) && (now == none || hasNoMembers(now)) {
			keep.put(at+o.path.pointer(), aValue, value, nil)
		}
	}
}

// without returns x without dropped fields.
func (d *direction) without(x any) any {
	x = clone(x)
	for _, drop := range d.drops {
		remove(x, drop)
	}
	return x
}

// forward converts x and restores data of s that the law allows. Keep has only data without an
// image in y, or with an image that does not convert back.
//
// It reads only x and writes only y, so that rules do not depend on their order.
func (d *direction) forward(x any, s *preserved, at string) (y any, keep *preserved) {
	keep = newPreserved()
	x = clone(x)
	for i := range d.collections {
		if e := &d.collections[i]; e.common.fits(find(x, e.path)) {
			keep.add(e.convert(x, s, at))
		}
	}
	if !isObject(x) {
		return x, keep
	}
	x = d.openNulls(d.without(x), s, at)
	object := clone(x).(map[string]any)
	d.take(x, object, keep, at)

	for _, m := range d.moves {
		if value := find(x, m.from); value != none {
			put(object, m.to, value)
		}
	}
	copies := newPreserved()
	for i := range d.exchanges {
		keep.taken = append(keep.taken, d.exchanges[i].taken(x, s, at)...)
		keepAlone, keepBesides := d.exchanges[i].convert(x, object, s, at)
		keep.add(keepAlone)
		copies.add(keepBesides)
	}
	d.restore(x, object, s, at)
	d.fill(x, object, s, at)
	for _, o := range d.shared {
		o.removeEmptied(x, object, s, keep, at)
	}
	keep.add(copies)
	return object, keep
}

// take removes from y all fields of x that are elsewhere in y, or not in y.
func (d *direction) take(x any, y map[string]any, keep *preserved, at string) {
	for _, m := range d.moves {
		remove(y, m.from)
	}
	for _, e := range d.exchanges {
		for _, f := range e.from {
			remove(y, f.Path)
		}
	}
	for _, f := range d.emptied {
		remove(y, f.path)
	}
	for _, l := range d.lost {
		for _, field := range l.fields(x) {
			keep.put(at+field.pointer(), aValue, find(x, field), nil)
			keep.anchor(at, field, aValue, l.Anchor)
			if l.Null || l.Common != nil {
				keep.taken = append(keep.taken, taken{at + field.pointer(), l.Common})
			}
			remove(y, field)
		}
		if l.Shell && hasNoMembers(find(y, l.Path)) {
			remove(y, l.Path) // its fields are gone, or convert preserves it
		}
	}
}

// fields returns the fields of x that a leaf field stands for.
func (l *leaf) fields(x any) []path {
	switch {
	case l.Shell:
		if list, isList := find(x, l.Path).([]any); isList && len(list) > 0 {
			return []path{l.Path} // not an object, so the other side has no place for it
		}
		return nil
	case l.Known == nil:
		if value := find(x, l.Path); value == none || l.Null && value != nil || l.Common != nil && l.Common.fits(value) {
			return nil
		}
		return []path{l.Path}
	}
	var fields []path
	holder, _ := find(x, l.Path).(map[string]any)
	for name := range holder {
		if !slices.Contains(l.Known, name) {
			fields = append(fields, append(slices.Clip(l.Path), name))
		}
	}
	return fields
}

// restore brings back fields that x lacks. The anchor must still exist, and y must have no value.
func (d *direction) restore(x any, y map[string]any, s *preserved, at string) {
	for _, l := range d.missing {
		if !isObject(find(x, l.Path[:l.Anchor])) {
			continue
		}
		if l.Known != nil {
			l.restoreUnknown(y, s, at)
			continue
		}
		if e := s.find(at+l.Path.pointer(), aValue); e != nil && l.isPreservedAs(e.value) {
			e.restore(y, l.Path, func(value any) bool { return l.accepts(value, s) })
		}
	}
}

// restore brings a value back if it fits and y has none.
func (e *entry) restore(y map[string]any, at path, fits func(any) bool) {
	switch {
	case e == nil:
	case find(y, at) != none:
		e.state = done
	case !fits(e.value):
		e.state = refused
	default:
		e.state = done
		put(y, at, clone(e.value))
	}
}

// isPreservedAs reports whether the field is preserved as this value. A shell must not restore
// fields that have rules.
func (l *leaf) isPreservedAs(value any) bool {
	return (!l.Shell || hasNoMembers(value)) && (!l.Null || value == nil) && (l.Common == nil || !l.Common.fits(value))
}

func (l *leaf) accepts(value any, s *preserved) bool {
	place := field{Text: l.Text, Label: l.Label, schema: l.schema}
	return place.accepts(value, s)
}

// openNulls returns x with empty objects in the place of nulls that no client wrote, if preserved
// data belongs into them.
func (d *direction) openNulls(x any, s *preserved, at string) any {
	x = clone(x)
	open := func(full, above path, isNull bool) {
		if s.find(at+full.pointer(), aValue) != nil && len(above) > 0 && !isNull && find(x, above) == nil {
			put(x.(map[string]any), above, map[string]any{})
		}
	}
	for _, l := range d.missing {
		open(l.Path, l.Path[:l.Anchor], l.NullAnchor)
	}
	for _, e := range d.exchanges {
		for _, f := range e.to {
			open(f.Path, f.Path[:f.Anchor], f.NullAnchor)
		}
	}
	for _, f := range slices.Concat(d.filled, d.emptied) {
		open(f.path, f.path[:f.anchor], f.nullAnchor)
	}
	return x
}

func (l *leaf) restoreUnknown(y map[string]any, s *preserved, at string) {
	if holder := find(y, l.Path); holder != none && !isObject(holder) {
		s.markUnnamed(at+l.Path.pointer(), true)
		return
	}
	for _, field := range s.members(at + l.Path.pointer()) {
		full := append(slices.Clip(l.Path), field)
		if !slices.Contains(l.Known, field) {
			s.find(at+full.pointer(), aValue).restore(y, full, func(value any) bool { return l.acceptsUnknown(field, value, s) })
		}
	}
}

func (l *leaf) acceptsUnknown(name string, value any, s *preserved) bool {
	if l.schema == nil {
		return true
	}
	member := l.schema.Field(name)
	return member != nil && s.accepts(member, value)
}

// fill sets the defaults of fields that x lacks, unless their absence is preserved.
func (d *direction) fill(x any, y map[string]any, s *preserved, at string) {
	for _, f := range d.filled {
		if !isObject(find(x, f.path[:f.anchor])) || find(y, f.path) != none {
			continue
		}
		absence := s.find(at+f.path.pointer(), anAbsence)
		if absence != nil {
			absence.state = done
		}
		s.find(at+f.path.pointer(), aValue).restore(y, f.path, func(value any) bool { return s.accepts(f.schema, value) })
		if find(y, f.path) == none && d.isWhole && absence == nil && f.value != none {
			put(y, f.path, clone(f.value))
		}
	}
}
