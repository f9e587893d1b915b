// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

// convert converts x, with s that was kept aside when it left the other side.
// What y would not convert back to is kept aside: that is the law. At is the
// place of x.
func (w *way) convert(x any, s *kept, at string) (y any, keep *kept) {
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
func (w *way) keepFilled(x, y any, keep *kept, at string) {
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
func (w *way) keepBare(x, y any, keep *kept, at string) {
	again, _ := w.back.forward(y, keep, at)
	for _, l := range w.lost {
		if value := find(x, l.Path); l.Shell && bare(value) && !Equal(value, find(again, l.Path)) {
			keep.put(at+l.Path.pointer(), aValue, value, nil)
			keep.anchor(at, l.Path, aValue, l.Anchor)
		}
	}
	for _, o := range w.lenders {
		now := find(again, o.path)
		value := find(x, o.path)
		if _, isList := value.([]any); (isList || bare(value)) && !Equal(value, now) && (now == none || bare(now)) {
			keep.put(at+o.path.pointer(), aValue, value, nil)
		}
	}
}

// without is x without what is given up in it.
func (w *way) without(x any) any {
	x = clone(x)
	for _, drop := range w.drops {
		remove(x, drop)
	}
	return x
}
