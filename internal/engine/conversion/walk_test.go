// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/internal/generate"
)

// FuzzWalk converts an object from version to version, and edits it at some of them. The last edit
// stays; and without an edit, the object comes back unchanged after any number of versions. Only values that every version can have are compared:
// others remain in annotations, and are counted as left out.
func FuzzWalk(f *testing.F) {
	fuzzWorlds(f, func(t *testing.T, w *world) {
		start := generate.One(w.Choices, w.ruleset.Versions...)
		object := w.object(start)
		at, walked, edits, edited := start, object, w.IntN(2) == 0, false
		fitted := w.fitsEverywhere(t, object)
		for range 3 + w.IntN(4) {
			at = generate.One(w.Choices, w.ruleset.Versions...)
			walked = convert(t, w.converter, walked, at)
			if edits && w.IntN(3) == 0 {
				walked, edited = w.edited(t, walked, w.object(at)), true
			}
			fitted = fitted && w.fitsEverywhere(t, walked)
		}
		if !fitted {
			w.count("left out: a version cannot have it")
			return
		}
		others := slices.DeleteFunc(slices.Clone(w.ruleset.Versions), func(version string) bool { return version == at })
		w.editWins(t, walked, at, generate.One(w.Choices, others...))
		if !edited && w.hasNoDrops() {
			w.count("came back unedited")
			back := convert(t, w.converter, walked, start)
			wantEqual(t, emptyAsNull(withoutPreserved(withoutServerMetadata(t, object))), emptyAsNull(withoutPreserved(withoutServerMetadata(t, back))), "%s\nwalked to %s\n%s", object, at, walked)
		}
	}, cameBack, "came back unedited")
}

// fitsEverywhere reports whether the object fits the schema of every version.
func (w *world) fitsEverywhere(t testing.TB, object string) bool {
	t.Helper()
	return !slices.ContainsFunc(w.ruleset.Versions, func(version string) bool {
		return !w.fits(version, convert(t, w.converter, object, version))
	})
}

// hasNoDrops reports whether no rule drops a field.
func (w *world) hasNoDrops() bool {
	for i := range w.rules.Spokes {
		for _, rule := range w.rules.Spokes[i].Rules {
			if rule.Drop != nil {
				return false
			}
		}
	}
	return true
}

// FuzzLeaf edits one field of an object at the other version. At its own version, only fields that
// a rule computes from it may change. Worlds with such rules, and objects without a text, are
// counted as left out.
func FuzzLeaf(f *testing.F) {
	fuzzWorlds(f, func(t *testing.T, w *world) {
		from, to := w.pair()
		there := convert(t, w.converter, w.object(from), to)
		unedited := withoutPreserved(withoutServerMetadata(t, convert(t, w.converter, there, from)))
		object := decode(t, there)
		before := leavesOf(withoutPreserved(withoutServerMetadata(t, there)), "")
		pointers := slices.DeleteFunc(slices.Sorted(maps.Keys(before)), func(p string) bool {
			_, isText := before[p].(string)
			return !isText || !strings.HasPrefix(p, "/spec/")
		})
		if len(pointers) == 0 {
			w.count("left out: no text to edit")
			return
		}
		w.count(w.independent())
		pointer := generate.One(w.Choices, pointers...)
		setAt(object, splitPointer(pointer), "edited")
		back := withoutPreserved(withoutServerMetadata(t, convert(t, w.converter, generate.Plain(object), from)))
		if changed := differing(unedited, back); len(changed) > 1 && w.oneToOne() {
			t.Fatalf("%s\nwas edited at %s of %s, and %v differ:\n%s\n%s", there, pointer, to, changed, generate.Plain(unedited), generate.Plain(back))
		}
	}, oneByOne)
}

// setAt sets a value below objects.
func setAt(value any, path []string, to any) {
	for _, segment := range path[:len(path)-1] {
		value = value.(map[string]any)[unescapePointer(segment)]
	}
	value.(map[string]any)[unescapePointer(path[len(path)-1])] = to
}

// differing returns the pointers of the fields that differ between two objects.
func differing(a, b any) (places []string) {
	left, right := leavesOf(a, ""), leavesOf(b, "")
	all := maps.Clone(left)
	maps.Copy(all, right)
	for _, place := range slices.Sorted(maps.Keys(all)) {
		was, before := left[place]
		is, after := right[place]
		if before != after || !reflect.DeepEqual(was, is) {
			places = append(places, place)
		}
	}
	return places
}
