// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/conversion/internal/generate"
	"github.com/conversion-operator/conversion-operator/internal/conversion/reference"
)

// FuzzWalk: an object goes from version to version, and is edited at some of them. The
// engine and the reference agree on each step; what was edited last stays; and without
// an edit, the object comes back as it was, however many versions it has seen. That
// holds for values that every version can have: others are carried on in annotations,
// and counted as left out.
func FuzzWalk(f *testing.F) {
	fuzzWorlds(f, func(t *testing.T, w *world) {
		start := generate.One(w.Choices, w.ruleset.Versions...)
		object := w.object(start)
		at, walked, edits, edited := start, object, w.IntN(2) == 0, false
		fitted := w.fitsEverywhere(t, object)
		for range 3 + w.IntN(4) {
			at = generate.One(w.Choices, w.ruleset.Versions...)
			walked = w.asReference(t, walked, at)
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
		if !edited && w.givesNothingUp() {
			w.count("came back unedited")
			back := convert(t, w.converter, walked, start)
			wantEqual(t, emptyAsNull(withoutKept(essence(t, object))), emptyAsNull(withoutKept(essence(t, back))), "%s\nwalked to %s\n%s", object, at, walked)
		}
	}, wholly, "came back unedited")
}

// fitsEverywhere reports whether an object is one that each version can have.
func (w *world) fitsEverywhere(t testing.TB, object string) bool {
	t.Helper()
	return !slices.ContainsFunc(w.ruleset.Versions, func(version string) bool {
		return !w.fits(version, convert(t, w.converter, object, version))
	})
}

// givesNothingUp reports whether no rule drops a field.
func (w *world) givesNothingUp() bool {
	for i := range w.rules.Spokes {
		for _, rule := range w.rules.Spokes[i].Rules {
			if rule.Drop != nil {
				return false
			}
		}
	}
	return true
}

// FuzzLeaf: if one field of an object is edited at the other version, and nothing else,
// then nothing else changes at its own version but what a rule computes of that field.
// Worlds with such rules, and objects without a text, are left out, and counted.
func FuzzLeaf(f *testing.F) {
	fuzzWorlds(f, func(t *testing.T, w *world) {
		from, to := w.pair()
		there := convert(t, w.converter, w.object(from), to)
		unedited := withoutKept(essence(t, convert(t, w.converter, there, from)))
		object := decode(t, there)
		before := leavesOf(withoutKept(essence(t, there)), "")
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
		setAt(object, conversion.SplitPointer([]byte(pointer)), "edited")
		back := withoutKept(essence(t, convert(t, w.converter, generate.Plain(object), from)))
		if changed := differing(unedited, back); len(changed) > 1 && w.oneToOne() {
			t.Fatalf("%s\nwas edited at %s of %s, and %v differ:\n%s\n%s", there, pointer, to, changed, generate.Plain(unedited), generate.Plain(back))
		}
	}, oneByOne)
}

// setAt sets a member of objects.
func setAt(value any, path []string, to any) {
	for _, segment := range path[:len(path)-1] {
		value = value.(map[string]any)[conversion.UnescapePointer(segment)]
	}
	value.(map[string]any)[conversion.UnescapePointer(path[len(path)-1])] = to
}

// differing are the places of the fields that two objects do not share.
func differing(a, b any) (places []string) {
	left, right := leavesOf(a, ""), leavesOf(b, "")
	all := maps.Clone(left)
	maps.Copy(all, right)
	for _, place := range slices.Sorted(maps.Keys(all)) {
		was, before := left[place]
		is, after := right[place]
		if before != after || !reference.Equal(was, is) {
			places = append(places, place)
		}
	}
	return places
}
