// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import "testing"

// FuzzGetPut: an object that was converted and is converted back is as it was.
func FuzzGetPut(f *testing.F) {
	fuzzWorlds(f, func(t *testing.T, w *world) {
		from, to := w.pair()
		w.roundTrip(t, w.object(from), from, to)
	})
}

func (w *world) roundTrip(t testing.TB, object, from, to string) {
	t.Helper()
	there := convert(t, w.converter, object, to)
	back := convert(t, w.converter, there, from)
	want := w.surviving(t, object, from, to)
	if w.fits(from, object) && !w.fits(from, want) {
		return // rules that give up the keys of a list leave what the API server refuses: it is carried on
	}
	wantEqual(t, essence(t, want), essence(t, back), "%s\nis at %s\n%s", object, to, there)
}
