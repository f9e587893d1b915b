// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

// convert converts x, with s that was kept aside when it left the other side.
// What y would not convert back to is kept aside: that is the law. At is the
// place of x.
func (w *way) convert(x any, s kept, at string) (y any, keep kept) {
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
func (w *way) keepFilled(x, y any, keep kept, at string) {
	again, _ := w.back.forward(y, keep, at)
	for _, f := range w.emptied {
		pointer := at + f.path.pointer()
		switch value := find(x, f.path); {
		case Equal(value, find(again, f.path)):
		case value == none:
			keep["!"+pointer] = true
		default:
			keep[pointer] = value
		}
	}
}

// keepBare keeps objects that have nothing in them and would not come back.
func (w *way) keepBare(x, y any, keep kept, at string) {
	again, _ := w.back.forward(y, keep, at)
	var objects []path
	for _, l := range w.lost {
		if l.Shell {
			objects = append(objects, l.Path)
		}
	}
	for _, o := range w.lenders {
		objects = append(objects, o.path)
	}
	for _, object := range objects {
		if value := find(x, object); bare(value) && !Equal(value, find(again, object)) {
			keep[at+object.pointer()] = value
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
