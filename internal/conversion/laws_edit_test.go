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

// FuzzStale: a value that was edited in the other version is that value there for
// good, whatever was preserved: of the object before the edit, of another object,
// or of an edit before.
func FuzzStale(f *testing.F) {
	fuzzWorlds(f, func(t *testing.T, w *world) {
		from, to := w.pair()
		there := convert(t, w.converter, w.object(from), to)
		another := convert(t, w.converter, w.object(from), to)
		there = w.withAnnotationsOf(t, there, another)
		for range 3 {
			there = w.edited(t, there, w.object(to))
			w.editWins(t, there, to, from)
			there = convert(t, w.converter, convert(t, w.converter, there, from), to)
		}
	})
}

// withPreservedOf is an object with what another one has preserved of a version.
func (w *world) withPreservedOf(t testing.TB, version, object, other string) string {
	t.Helper()
	value := decode(t, object)
	annotations, _ := lookUp(value, conversion.Path{"metadata", "annotations"}).(map[string]any)
	if annotations == nil {
		annotations = map[string]any{}
	}
	others, _ := lookUp(decode(t, other), conversion.Path{"metadata", "annotations"}).(map[string]any)
	for _, name := range []string{conversion.AnnotationName(w.ruleset.CRD, version), conversion.LegacyName(version)} {
		if delete(annotations, name); others[name] != nil {
			annotations[name] = others[name]
		}
	}
	value["metadata"].(map[string]any)["annotations"] = annotations
	return generate.Plain(value)
}

// withAnnotationsOf is an object with what was preserved of another one.
func (w *world) withAnnotationsOf(t testing.TB, object, other string) string {
	t.Helper()
	value := decode(t, object)
	metadata, _ := value["metadata"].(map[string]any)
	stale, _ := decode(t, other)["metadata"].(map[string]any)
	if metadata == nil {
		return object
	}
	metadata["annotations"] = stale["annotations"]
	if stale["annotations"] == nil {
		delete(metadata, "annotations")
	}
	return generate.Plain(value)
}

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

// thin takes fields away, and leaves the lists as long unchanged.
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
	ruleset, err := w.ruleset.Marshal()
	return err == nil && !strings.Contains(string(ruleset), `"exchanges"`)
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

// FuzzMeta: of the metadata only labels and annotations change, and of those only
// what rules have and what is preserved. What the API server restores may be
// left out, but for what it checks.
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
			if name != "labels" && name != "annotations" && !reference.Equal(value, before[name]) {
				t.Fatalf("metadata.%s of %s is changed in %s", name, object, there)
			}
		}
		for _, name := range []string{"name", "namespace", "uid"} {
			wantEqual(t, before[name], after[name], "metadata.%s of %s", name, object)
		}
		for _, name := range []string{"labels", "annotations"} {
			wantEqual(t, unruled(before[name]), unruled(after[name]), "metadata.%s of %s", name, object)
		}
	})
}

// unruled are the labels or annotations that no rule of any world names.
func unruled(value any) map[string]any {
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
