// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/conversion/reference"
)

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
		if !slices.Contains([]string{"l", "bottom", "other"}, name) && !strings.HasPrefix(name, conversion.KeptPrefix) {
			rest[name] = text
		}
	}
	return rest
}
