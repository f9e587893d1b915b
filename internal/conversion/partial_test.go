// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/conversion/internal/generate"
)

// FuzzPartial: a fragment of an object, as server-side apply converts it, has no
// field at the other version that the object does not have there, and comes back
// as it was.
func FuzzPartial(f *testing.F) {
	fuzzWorlds(f, func(t *testing.T, w *world) {
		from, to := w.pair()
		object := decode(t, w.object(from))
		delete(object, "metadata")
		fragment := decode(t, generate.Plain(object))
		w.thin(fragment)
		fragment["apiVersion"], fragment["kind"] = object["apiVersion"], object["kind"]

		part := generate.Plain(fragment)
		w.roundTrip(t, part, from, to)
		whole, some := convert(t, w.converter, generate.Plain(object), to), convert(t, w.converter, part, to)
		if w.count(w.independent()); w.oneToOne() {
			wantWithin(t, withoutKept(essence(t, whole)), withoutKept(essence(t, some)), to+" of "+part)
		}
	}, oneByOne)
}

// thin takes fields away, and leaves the lists as long as they are.
func (w *world) thin(value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if w.Rarely(4) && name != "name" && name != "a" { // those are keys of lists
				delete(value, name)
				continue
			}
			w.thin(value[name])
		}
	case []any:
		for _, element := range value {
			w.thin(element)
		}
	}
}

// oneToOne reports whether every value of one version is at most one value of the
// other, so that values do not depend on each other.
func (w *world) oneToOne() bool {
	plan, err := w.plan.Marshal()
	return err == nil && !strings.Contains(string(plan), `"exchanges"`)
}

const (
	oneByOne   = "compared at the other version"
	byExchange = "left out: rules that compute values"
)

// independent is what a law counts that compares values only where they do not depend
// on each other.
func (w *world) independent() string {
	if w.oneToOne() {
		return oneByOne
	}
	return byExchange
}

// wantWithin compares the scalars of an object with those of a larger one.
func wantWithin(t testing.TB, larger, smaller any, where string) {
	t.Helper()
	switch smaller := smaller.(type) {
	case map[string]any:
		object, _ := larger.(map[string]any)
		for name, value := range smaller {
			wantWithin(t, object[name], value, where+"."+name)
		}
	case []any:
		list, _ := larger.([]any)
		for i, value := range smaller {
			if i >= len(list) {
				t.Fatalf("%s has %d elements, and %d in the whole object", where, len(smaller), len(list))
			}
			wantWithin(t, list[i], value, where)
		}
	default:
		wantEqual(t, larger, smaller, "%s", where)
	}
}
