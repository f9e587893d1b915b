// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"testing"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/internal/conversion/reference"
)

// FuzzTotality: every object is converted, be it one that breaks its schema, and
// to one that the API server accepts from a converter.
func FuzzTotality(f *testing.F) {
	fuzzWorlds(f, func(t *testing.T, w *world) {
		w.Odd = []int{0, 8, 30}[w.IntN(3)]
		from, to := w.pair()
		object := w.object(from)
		there := convert(t, w.converter, object, to)
		wantAccepted(t, object, there, to)
		edited := w.edited(t, there, w.object(to))
		wantAccepted(t, edited, convert(t, w.converter, edited, from), from)
	})
}

// wantAccepted holds an answer against what the API server asks of one:
// k8s.io/apiextensions-apiserver/pkg/apiserver/conversion, restoreObjectMeta.
func wantAccepted(t *testing.T, object, answer, version string) {
	t.Helper()
	before, after := decode(t, object), decode(t, answer)
	if after["apiVersion"] != "example.com/"+version || after["kind"] != "Widget" {
		t.Fatalf("%s is not of version %s", answer, version)
	}
	old, _ := before["metadata"].(map[string]any)
	metadata, isObject := after["metadata"].(map[string]any)
	if !isObject {
		t.Fatalf("%s has no metadata", answer)
	}
	for name, validate := range map[string]func(map[string]string, *field.Path) field.ErrorList{
		"labels": metavalidation.ValidateLabels, "annotations": apivalidation.ValidateAnnotations,
	} {
		value, found := metadata[name]
		if !found || value == nil {
			continue
		}
		texts := map[string]string{}
		for key, value := range value.(map[string]any) {
			text, isText := value.(string)
			if !isText {
				t.Fatalf("metadata.%s[%s] is no text in %s", name, key, answer)
			}
			texts[key] = text
		}
		if errs := validate(texts, field.NewPath("metadata", name)); len(errs) > 0 && !reference.Equal(old[name], value) {
			t.Fatalf("%s is\n%s: %v", object, answer, errs)
		}
	}
}
