// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/conversion/internal/generate"
)

// FuzzGetPut: an object that was converted and is converted back is as it was. Where the
// rules give up a field that the schema requires, what is left of the object around it
// does not fit: it may be preserved instead (wantSomewhere).
func FuzzGetPut(f *testing.F) {
	fuzzWorlds(f, func(t *testing.T, w *world) {
		from, to := w.pair()
		w.roundTrip(t, w.object(from), from, to)
	}, wholly)
}

const (
	wholly = "came back wholly"
	inPart = "came back but for what does not fit, which is preserved"
)

func (w *world) roundTrip(t testing.TB, object, from, to string) {
	t.Helper()
	there := convert(t, w.converter, object, to)
	back := convert(t, w.converter, there, from)
	want := w.surviving(t, object, from, to)
	if w.fits(from, object) && !w.fits(from, want) {
		w.count(inPart)
		w.wantSomewhere(t, essence(t, want), back, from, object+"\nis at "+to+"\n"+there)
		return
	}
	w.count(wholly)
	wantEqual(t, essence(t, want), essence(t, back), "%s\nis at %s\n%s", object, to, there)
}

// wantSomewhere holds an object against one that was wanted and does not fit: each field
// that the object lacks is preserved of the version or, on a way through the hub, of that.
func (w *world) wantSomewhere(t testing.TB, want map[string]any, got, version, where string) {
	t.Helper()
	object := decode(t, got)
	own, ofHub := w.preservedOf(t, object, version), w.preservedOf(t, object, w.plan.Hub)
	is := withoutKept(essence(t, got))
	for pointer, value := range leavesOf(withoutKept(want), "") {
		if same, found := valueAt(is, pointer); found && has(same, value) || value == nil || isEmpty(value) {
			continue
		}
		if len(ofHub) == 0 && !covered(own, pointer) {
			t.Fatalf("%s\nlacks %s when it comes back, and has not preserved it:\n%s\nwant\n%s", where, pointer, got, generate.Plain(want))
		}
	}
}

// preservedOf are the values that an object has preserved of a version.
func (w *world) preservedOf(t testing.TB, object map[string]any, version string) map[string]any {
	t.Helper()
	annotations, _ := lookUp(object, conversion.Path{"metadata", "annotations"}).(map[string]any)
	text, _ := annotations[conversion.AnnotationName(w.plan.CRD, version)].(string)
	preserved, _ := inflated(t, text).(map[string]any)
	fields, _ := preserved["fields"].(map[string]any)
	return fields
}

// covered reports whether a place is one of some, or in one, or has one in it.
func covered(places map[string]any, pointer string) bool {
	for at := range places {
		if at == pointer || strings.HasPrefix(at, pointer+"/") || strings.HasPrefix(pointer, at+"/") {
			return true
		}
	}
	return false
}
