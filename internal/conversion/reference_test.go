// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/conversion/internal/generate"
)

// FuzzReference: the engine and the reference convert to the same object, and
// preserve the same; there, and back.
func FuzzReference(f *testing.F) {
	fuzzWorlds(f, func(t *testing.T, w *world) {
		from, to := w.pair()
		w.Odd = []int{0, 0, 30}[w.IntN(3)]
		there := w.asReference(t, w.object(from), to)
		w.asReference(t, there, from)
		edited := w.edited(t, there, w.object(to))
		w.asReference(t, edited, from)
	})
}

func (w *world) asReference(t testing.TB, object, to string) string {
	t.Helper()
	got := convert(t, w.converter, object, to)
	want, err := w.reference.Convert(decode(t, object), to)
	if err != nil {
		t.Fatalf("%v: %s", err, object)
	}
	wantEqual(t, legible(t, generate.Plain(want)), legible(t, got), "%s\nat %s", object, to)
	return got
}

// legible is the essence of an object with what was preserved decoded.
func legible(t testing.TB, text string) map[string]any {
	t.Helper()
	object := essence(t, text)
	metadata := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	for name, value := range annotations {
		if text, isText := value.(string); isText && strings.HasPrefix(name, conversion.KeptPrefix) {
			annotations[name] = inflated(t, text)
		}
	}
	return object
}
