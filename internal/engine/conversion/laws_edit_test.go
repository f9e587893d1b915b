// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/internal/generate"
)

// FuzzStale checks that an edit at the other version stays, whatever was preserved: of the object
// before the edit, of another object, or of an earlier edit.
func FuzzStale(f *testing.F) {
	fuzzWorlds(f, func(t *testing.T, w *world) {
		from, to := w.pair()
		there := convert(t, w.converter, w.object(from), to)
		another := convert(t, w.converter, w.object(from), to)
		there = w.withAllPreservedOf(t, there, another)
		for range 3 {
			there = w.edited(t, there, w.object(to))
			w.editWins(t, there, to, from)
			there = convert(t, w.converter, convert(t, w.converter, there, from), to)
		}
	})
}

// withPreservedOf returns an object with the preserved data that another object has of a version.
func (w *world) withPreservedOf(t testing.TB, version, object, other string) string {
	t.Helper()
	value := decode(t, object)
	annotations := annotationsOf(value)
	if annotations == nil {
		annotations = map[string]any{}
	}
	others := annotationsOf(decode(t, other))
	name := conversion.AnnotationName(w.ruleset.CRD, version)
	if delete(annotations, name); others[name] != nil {
		annotations[name] = others[name]
	}
	metadata, _ := value["metadata"].(map[string]any)
	if metadata == nil {
		return object
	}
	if metadata["annotations"] = annotations; len(annotations) == 0 {
		delete(metadata, "annotations")
	}
	return generate.Plain(value)
}

// withAllPreservedOf returns an object with the preserved data that another object has of all versions. Other
// annotations stay: a rule may read them.
func (w *world) withAllPreservedOf(t testing.TB, object, other string) string {
	t.Helper()
	for version := range w.schemas {
		object = w.withPreservedOf(t, version, object, other)
	}
	return object
}

// FuzzPartial converts a fragment of an object, as server-side apply does. The fragment has no
// field at the other version that the whole object lacks there, and comes back unchanged.
func FuzzPartial(f *testing.F) {
	fuzzWorlds(f, func(t *testing.T, w *world) {
		from, to := w.pair()
		object := decode(t, w.object(from))
		delete(object, "metadata")
		fragment := decode(t, generate.Plain(object))
		w.removeSome(fragment)
		fragment["apiVersion"], fragment["kind"] = object["apiVersion"], object["kind"]

		part := generate.Plain(fragment)
		w.roundTrip(t, part, from, to)
		whole, some := convert(t, w.converter, generate.Plain(object), to), convert(t, w.converter, part, to)
		if w.count(w.independent()); w.oneToOne() {
			wantEqual(t, "", foreign(withoutPreserved(withoutServerMetadata(t, whole)), withoutPreserved(withoutServerMetadata(t, some)), to),
				"a field that %s has not in %s, in %s of %s", object, whole, some, part)
		}
	}, oneByOne)
}

// removeSome removes fields, and members of maps, but no elements of lists.
func (w *world) removeSome(value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if w.Rarely(4) && name != "name" && name != "a" { // those are keys of lists
				delete(value, name)
				continue
			}
			w.removeSome(value[name])
		}
	case []any:
		for _, element := range value {
			w.removeSome(element)
		}
	}
}

// oneToOne reports whether no value is computed from several others.
func (w *world) oneToOne() bool {
	ruleset, err := w.ruleset.Marshal()
	return err == nil && !strings.Contains(string(ruleset), `"exchanges"`)
}

const (
	oneByOne   = "compared at the other version"
	byExchange = "left out: rules that compute values"
)

// independent returns the part to count in a law that compares values only in worlds that are
// oneToOne.
func (w *world) independent() string {
	if w.oneToOne() {
		return oneByOne
	}
	return byExchange
}

// foreign returns where an object has a scalar that a larger object has not, empty if nowhere. The elements of a list
// correspond by index, or, if the larger one has more, in any way: they may be members of a map.
func foreign(larger, smaller any, at string) string {
	switch smaller := smaller.(type) {
	case map[string]any:
		object, _ := larger.(map[string]any)
		for name, value := range smaller {
			if found := foreign(object[name], value, at+"."+name); found != "" {
				return found
			}
		}
	case []any:
		list, _ := larger.([]any)
		for i, value := range smaller {
			others := list
			if len(list) == len(smaller) {
				others = list[i : i+1]
			}
			if !slices.ContainsFunc(others, func(other any) bool { return foreign(other, value, at) == "" }) {
				return fmt.Sprintf("%s[%d]", at, i)
			}
		}
	default:
		if !reflect.DeepEqual(larger, smaller) {
			return at
		}
	}
	return ""
}

// FuzzMeta checks that of the metadata only labels and annotations change, and of those only the
// ones that rules name and the ones for preserved data. Metadata that the API server restores may
// be missing, except the fields that it compares.
func FuzzMeta(f *testing.F) {
	fuzzWorlds(f, func(t *testing.T, w *world) {
		from, to := w.pair()
		object := w.object(from)
		there := convert(t, w.converter, object, to)
		before, _ := decode(t, object)["metadata"].(map[string]any)
		after, isObject := decode(t, there)["metadata"].(map[string]any)
		if !isObject {
			t.Fatalf("there is no metadata in %s", there)
		}
		for name, value := range after {
			if name != "labels" && name != "annotations" && !reflect.DeepEqual(value, before[name]) {
				t.Fatalf("metadata.%s of %s is changed in %s", name, object, there)
			}
		}
		for _, name := range []string{"name", "namespace", "uid"} {
			wantEqual(t, before[name], after[name], "metadata.%s of %s", name, object)
		}
		for _, name := range []string{"labels", "annotations"} {
			wantEqual(t, withoutRuled(before[name]), withoutRuled(after[name]), "metadata.%s of %s", name, object)
		}
	})
}

// withoutRuled returns the labels or annotations that no rule of any world names.
func withoutRuled(value any) map[string]any {
	texts, rest := map[string]any{}, map[string]any{}
	if value != nil {
		texts = value.(map[string]any)
	}
	for name, text := range texts {
		if !slices.Contains([]string{"l", "bottom", "other"}, name) && !strings.HasPrefix(name, conversion.PreservedPrefix) {
			rest[name] = text
		}
	}
	return rest
}
