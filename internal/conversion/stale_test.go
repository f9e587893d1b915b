// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/conversion/internal/generate"
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
	for _, name := range []string{conversion.AnnotationName(w.plan.CRD, version), conversion.LegacyName(version)} {
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
