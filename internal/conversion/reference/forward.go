// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import "slices"

// forward converts x and restores of s what the law allows. In keep is only what
// has no image in y, or one that does not convert back.
//
// All is read from x and written to y, so that rules do not depend on their order.
func (w *way) forward(x any, s kept, at string) (y any, keep kept) {
	keep = kept{}
	x = clone(x)
	for i := range w.collections {
		keep.add(w.collections[i].convert(x, s, at))
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
	copies := kept{}
	for i := range w.exchanges {
		keepAlone, keepBesides := w.exchanges[i].convert(x, object, s, at)
		keep.add(keepAlone)
		copies.add(keepBesides)
	}
	w.restore(x, object, s, at)
	w.fill(x, object, s, at)
	for _, o := range w.lenders {
		o.tidy(x, object, s, keep, at)
	}
	keep.add(copies)
	return object, keep
}

// take takes away from y all that has its place elsewhere in y, or none.
func (w *way) take(x any, y map[string]any, keep kept, at string) {
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
			keep[at+field.pointer()] = find(x, field)
			remove(y, field)
		}
		if l.Shell && bare(find(y, l.Path)) {
			remove(y, l.Path) // its fields are gone, or it is kept by convert
		}
	}
}

// fields are those in x that a leaf stands for.
func (l *leaf) fields(x any) []path {
	switch {
	case l.Shell:
		return nil
	case l.Known == nil:
		if value := find(x, l.Path); value == none || l.Null && value != nil {
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
func (w *way) restore(x any, y map[string]any, s kept, at string) {
	for _, l := range w.missing {
		if !isObject(find(x, l.Path[:l.Anchor])) {
			continue
		}
		if l.Known != nil {
			l.restoreUnknown(y, s, at)
			continue
		}
		value, found := s[at+l.Path.pointer()]
		if found && find(y, l.Path) == none && l.allows(value) {
			put(y, l.Path, value)
		}
	}
}

// allows reports whether a value may come back: a shell must not bring fields
// that have rules.
func (l *leaf) allows(value any) bool {
	place := field{Text: l.Text, Label: l.Label}
	return place.allows(value) && (!l.Shell || bare(value)) && (!l.Null || value == nil)
}

// opened is x with objects where it has nulls that nobody wrote, and something
// comes back into them.
func (w *way) opened(x any, s kept, at string) any {
	x = clone(x)
	open := func(full, above path, isNull bool) {
		_, comes := s[at+full.pointer()]
		if comes && len(above) > 0 && !isNull && find(x, above) == nil {
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

func (l *leaf) restoreUnknown(y map[string]any, s kept, at string) {
	if holder := find(y, l.Path); holder != none && !isObject(holder) {
		return
	}
	for _, field := range s.members(at + l.Path.pointer()) {
		full := append(slices.Clip(l.Path), field)
		if !slices.Contains(l.Known, field) && find(y, full) == none {
			put(y, full, s[at+full.pointer()])
		}
	}
}

// fill fills the fields that x lacks, unless y is known to have had none.
func (w *way) fill(x any, y map[string]any, s kept, at string) {
	for _, f := range w.filled {
		if !isObject(find(x, f.path[:f.anchor])) || find(y, f.path) != none {
			continue
		}
		value, found := s[at+f.path.pointer()]
		_, wasAbsent := s["!"+at+f.path.pointer()]
		switch {
		case found:
			put(y, f.path, value)
		case w.whole && !wasAbsent:
			put(y, f.path, f.value)
		}
	}
}

// tidy takes an object away that was there in x for values alone that are
// elsewhere in y. One that holds the place of a value that was kept aside stays.
func (o *lender) tidy(x any, y map[string]any, s, keep kept, at string) {
	pointer := at + o.path.pointer()
	now := find(y, o.path)
	if !isObject(now) || !bare(now) || !o.lends(find(x, o.path), o.path) || keep.under(pointer) {
		return
	}
	remove(y, o.path)
	if value, found := s[pointer]; found && bare(value) {
		put(y, o.path, value)
	}
}

// lends reports whether an object has something, and only what has its place
// elsewhere in y.
func (o *lender) lends(value any, at path) bool {
	object, _ := value.(map[string]any)
	for name := range object {
		member := append(slices.Clip(at), name)
		leaves := slices.ContainsFunc(o.out, func(p path) bool { return slices.Equal(p, member) })
		holds := slices.ContainsFunc(o.out, func(p path) bool { return p.has(member) })
		if !leaves && (!holds || !o.lends(object[name], member)) {
			return false
		}
	}
	return len(object) > 0
}
