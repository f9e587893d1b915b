// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
)

// TestRecordsMatchRules: over a long sequence of writes, the model of objects, which does not use
// the operator's code, equals what the converter makes by the policy of the run.
func TestRecordsMatchRules(t *testing.T) {
	converter := converterOfTheRun(t)
	objects, subjects, compared := map[string][]byte{}, map[string]*subject{"a": {}, "b": {}, "c": {}}, 0
	for _, s := range stepsOf(3, 400) {
		for _, w := range s.Writes {
			key, is := w.Subject+"/"+w.Name, subjects[w.Subject]
			is.write(w)
			want := is.Records[w.Name]
			switch w.Do {
			case deleteObject:
				delete(objects, key)
			case putObject:
				objects[key] = replaced(t, converter, objects[key], w.Version, want)
			case labelObject:
			}
			if objects[key] == nil {
				continue
			}
			for _, version := range versions {
				compared++
				converted := convert(t, converter, objects[key], version)
				if diff := cmp.Diff(want.spec(version), specOf(t, converted)); diff != "" {
					t.Fatalf("step %d, %s, written at %s, is not at %s what it should be (-want +got):\n%s", s.Number, key, w.Version, version, diff)
				}
				if wrong := preservedDiffers(storedAs(t, is, w.Name, version, converted), observation{}); len(wrong) > 0 {
					t.Fatalf("step %d, %s, written at %s: %q", s.Number, key, w.Version, wrong)
				}
			}
		}
	}
	if compared < 1000 {
		t.Errorf("%d comparisons: the sequence writes next to nothing", compared)
	}
}

// storedAs returns an observation with an object that is stored at a version.
func storedAs(t *testing.T, is *subject, name, version string, text []byte) observation {
	t.Helper()
	object := unstructured.Unstructured{Object: decoded(t, text)}
	held, err := preservedIn(object.GetAnnotations(), crdOf("a"))
	if err != nil {
		t.Fatal(err)
	}
	return observation{
		Subject: *is, Objects: map[string]entry{name: {Record: is.Records[name]}}, Stored: map[string]string{name: version},
		Preserved: map[string]map[string]map[string]any{name: held}}
}

func converterOfTheRun(t *testing.T) *conversion.Converter {
	t.Helper()
	all := subject{Name: "a", Versions: versions, Served: versions, Storage: hub}
	manifest, err := definitionOf(all, nil)
	if err != nil {
		t.Fatal(err)
	}
	crd, policy := &apiextensionsv1.CustomResourceDefinition{}, &v1alpha1.ConversionPolicy{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(manifest.Object, crd); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(policyManifest, policy); err != nil {
		t.Fatal(err)
	}
	compiled := compile.Compile(crd, policy.Spec.Converter.Declarative)
	if compiled.Ruleset == nil {
		t.Fatalf("the policy does not fit the definition: %+v", compiled)
	}
	converter, err := conversion.NewConverter(compiled.Ruleset)
	if err != nil {
		t.Fatal(err)
	}
	return converter
}

// replaced returns an object after a client read it at a version and replaced its spec.
func replaced(t *testing.T, converter *conversion.Converter, stored []byte, version string, by record) []byte {
	t.Helper()
	object := map[string]any{"apiVersion": groupOf("a") + "/" + version, "kind": "CronTab", "metadata": map[string]any{"name": "x"}}
	if stored != nil {
		object = decoded(t, convert(t, converter, stored, version))
	}
	object["spec"] = by.spec(version)
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func convert(t *testing.T, converter *conversion.Converter, object []byte, version string) []byte {
	t.Helper()
	converted, err := converter.Convert(nil, object, version)
	if err != nil {
		t.Fatal(err)
	}
	return converted
}

func decoded(t *testing.T, text []byte) map[string]any {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	return object.Object
}

func specOf(t *testing.T, text []byte) map[string]any {
	t.Helper()
	spec, ok := decoded(t, text)["spec"].(map[string]any)
	if !ok {
		t.Fatalf("no spec in %s", text)
	}
	return spec
}
