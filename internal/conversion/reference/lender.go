// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import "slices"

// tidy takes an object away that was there in x for values alone that are
// elsewhere in y. One that holds the place of a value that is preserved stays, be it
// of a third version.
func (o *lender) tidy(x any, y map[string]any, s, keep *kept, at string) {
	pointer := at + o.path.pointer()
	now := find(y, o.path)
	if !isObject(now) || !bare(now) || !o.lends(find(x, o.path), o.path) || keep.under(pointer) || s.holds(pointer) {
		return
	}
	remove(y, o.path)
	if e := s.find(pointer, aValue); e != nil && bare(e.value) {
		e.fate = settled
		put(y, o.path, clone(e.value))
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
