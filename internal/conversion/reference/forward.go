// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import "slices"

// convert converts x, with s that was preserved when it left the other side.
// What y would not convert back to is preserved: that is the law. At is the
// place of x.
func (w *direction) convert(x any, s *preserved, at string) (y any, keep *preserved) {
	y, keep = w.forward(x, s, at)
	if !isObject(x) {
		return y, keep
	}
	x = w.opened(w.without(x), s, at)
	w.keepFilled(x, y, keep, at)
	w.keepBare(x, y, keep, at)
	return y, keep
}

// keepFilled keeps fields that would be filled in otherwise than they were.
func (w *direction) keepFilled(x, y any, keep *preserved, at string) {
	again, _ := w.back.forward(y, keep, at)
	for _, f := range w.emptied {
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

// keepBare keeps objects that have nothing in them and would not come back, and lists
// where there should be such. One that comes back with something in it has its value.
func (w *direction) keepBare(x, y any, keep *preserved, at string) {
	again, _ := w.back.forward(y, keep, at)
	for _, l := range w.lost {
		if value := find(x, l.Path); l.Shell && bare(value) && !Equal(value, find(again, l.Path)) {
			keep.put(at+l.Path.pointer(), aValue, value, nil)
			keep.anchor(at, l.Path, aValue, l.Anchor)
		}
	}
	for _, o := range w.shared {
		now := find(again, o.path)
		value := find(x, o.path)
		if _, isList := value.([]any); (isList || bare(value)) && !Equal(value, now) && (now == none || bare(now)) {
			keep.put(at+o.path.pointer(), aValue, value, nil)
		}
	}
}

// without is x without what is given up in it.
func (w *direction) without(x any) any {
	x = clone(x)
	for _, drop := range w.drops {
		remove(x, drop)
	}
	return x
}

// forward converts x and restores of s what the law allows. In keep is only what
// has no image in y, or one that does not convert back.
//
// All is read from x and written to y, so that rules do not depend on their order.
func (w *direction) forward(x any, s *preserved, at string) (y any, keep *preserved) {
	keep = newPreserved()
	x = clone(x)
	for i := range w.collections {
		if e := &w.collections[i]; e.common.fits(find(x, e.path)) {
			keep.add(e.convert(x, s, at))
		}
	}
	if !isObject(x) {
		return x, keep
	}
	x = w.opened(w.without(x), s, at)
	object := clone(x).(map[string]any)
	w.take(x, object, keep, at)

	for _, m := range w.moves {
		if value := find(x, m.from); value != none {
			put(object, m.to, value)
		}
	}
	copies := newPreserved()
	for i := range w.exchanges {
		keep.taken = append(keep.taken, w.exchanges[i].taken(x, s, at)...)
		keepAlone, keepBesides := w.exchanges[i].convert(x, object, s, at)
		keep.add(keepAlone)
		copies.add(keepBesides)
	}
	w.restore(x, object, s, at)
	w.fill(x, object, s, at)
	for _, o := range w.shared {
		o.tidy(x, object, s, keep, at)
	}
	keep.add(copies)
	return object, keep
}

// take takes away from y all that has its place elsewhere in y, or none.
func (w *direction) take(x any, y map[string]any, keep *preserved, at string) {
	for _, m := range w.moves {
		remove(y, m.from)
	}
	for _, e := range w.exchanges {
		for _, f := range e.from {
			remove(y, f.Path)
		}
	}
	for _, f := range w.emptied {
		remove(y, f.path)
	}
	for _, l := range w.lost {
		for _, field := range l.fields(x) {
			keep.put(at+field.pointer(), aValue, find(x, field), nil)
			keep.anchor(at, field, aValue, l.Anchor)
			if l.Null || l.Common != nil {
				keep.taken = append(keep.taken, taken{at + field.pointer(), l.Common})
			}
			remove(y, field)
		}
		if l.Shell && bare(find(y, l.Path)) {
			remove(y, l.Path) // its fields are gone, or it is kept by convert
		}
	}
}

// fields are those in x that a leaf field stands for.
func (l *leaf) fields(x any) []path {
	switch {
	case l.Shell:
		if list, isList := find(x, l.Path).([]any); isList && len(list) > 0 {
			return []path{l.Path} // it is no object, and the other side has no place for it
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

// restore brings back fields that x lacks. The object above, as far as x has it,
// must still be there, and y must have no value.
func (w *direction) restore(x any, y map[string]any, s *preserved, at string) {
	for _, l := range w.missing {
		if !isObject(find(x, l.Path[:l.Anchor])) {
			continue
		}
		if l.Known != nil {
			l.restoreUnknown(y, s, at)
			continue
		}
		if e := s.find(at+l.Path.pointer(), aValue); e != nil && l.comesAs(e.value) {
			e.restore(y, l.Path, func(value any) bool { return l.accepts(value, s) })
		}
	}
}

// restore brings a value back where it fits, and nothing is there.
func (e *entry) restore(y map[string]any, at path, fits func(any) bool) {
	switch {
	case e == nil:
	case find(y, at) != none:
		e.fate = done
	case !fits(e.value):
		e.fate = refused
	default:
		e.fate = done
		put(y, at, clone(e.value))
	}
}

// comesAs reports whether a value is what the field is preserved as: a shell must
// not bring fields that have rules.
func (l *leaf) comesAs(value any) bool {
	return (!l.Shell || bare(value)) && (!l.Null || value == nil) && (l.Common == nil || !l.Common.fits(value))
}

func (l *leaf) accepts(value any, s *preserved) bool {
	place := field{Text: l.Text, Label: l.Label, schema: l.schema}
	return place.accepts(value, s)
}

// opened is x with objects where it has nulls that no client wrote, and something
// comes back into them.
func (w *direction) opened(x any, s *preserved, at string) any {
	x = clone(x)
	open := func(full, above path, isNull bool) {
		if s.find(at+full.pointer(), aValue) != nil && len(above) > 0 && !isNull && find(x, above) == nil {
			put(x.(map[string]any), above, map[string]any{})
		}
	}
	for _, l := range w.missing {
		open(l.Path, l.Path[:l.Anchor], l.NullAnchor)
	}
	for _, e := range w.exchanges {
		for _, f := range e.to {
			open(f.Path, f.Path[:f.Anchor], f.NullAnchor)
		}
	}
	for _, f := range slices.Concat(w.filled, w.emptied) {
		open(f.path, f.path[:f.anchor], f.nullAnchor)
	}
	return x
}

func (l *leaf) restoreUnknown(y map[string]any, s *preserved, at string) {
	if holder := find(y, l.Path); holder != none && !isObject(holder) {
		s.unname(at+l.Path.pointer(), true)
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

// fill fills the fields that x lacks, unless y is known to have had none.
func (w *direction) fill(x any, y map[string]any, s *preserved, at string) {
	for _, f := range w.filled {
		if !isObject(find(x, f.path[:f.anchor])) || find(y, f.path) != none {
			continue
		}
		absence := s.find(at+f.path.pointer(), anAbsence)
		if absence != nil {
			absence.fate = done
		}
		s.find(at+f.path.pointer(), aValue).restore(y, f.path, func(value any) bool { return s.accepts(f.schema, value) })
		if find(y, f.path) == none && w.whole && absence == nil {
			put(y, f.path, clone(f.value))
		}
	}
}
