// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apimanifests "github.com/operator-framework/api/pkg/manifests"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func load(t *testing.T) *apimanifests.Bundle {
	t.Helper()
	bundle, err := apimanifests.GetBundleFromDir(bundleDir)
	if err != nil {
		t.Fatal(err)
	}
	return bundle
}

func examples(t *testing.T, csv *operatorsv1alpha1.ClusterServiceVersion) []unstructured.Unstructured {
	t.Helper()
	var result []unstructured.Unstructured
	if err := json.Unmarshal([]byte(csv.Annotations["alm-examples"]), &result); err != nil {
		t.Fatal(err)
	}
	if len(result) == 0 {
		t.Fatal("no examples")
	}
	return result
}

// TestExamplesFitTheirSchemas is basic-check-spec and olm-crds-have-validation of the scorecard:
// each example has a spec, each kind a schema, and the schema has all fields of the example.
func TestExamplesFitTheirSchemas(t *testing.T) {
	bundle := load(t)
	for _, example := range examples(t, bundle.CSV) {
		spec, found, err := unstructured.NestedMap(example.Object, "spec")
		if err != nil || !found || len(spec) == 0 {
			t.Errorf("%s has no spec", example.GetName())
		}
		schema := storedSchema(t, bundle, example.GetKind())
		for name := range spec {
			if _, ok := schema.Properties["spec"].Properties[name]; !ok {
				t.Errorf("%s has spec.%s, which the schema does not know", example.GetName(), name)
			}
		}
	}
}

// TestKindsHaveResources is olm-crds-have-resources: each kind lists its resources.
func TestKindsHaveResources(t *testing.T) {
	bundle := load(t)
	for _, kind := range bundle.CSV.Spec.CustomResourceDefinitions.Owned {
		if len(kind.Resources) == 0 || kind.Description == "" || kind.DisplayName == "" {
			t.Errorf("%s lacks resources, description or displayName", kind.Name)
		}
	}
}

// TestEveryFieldHasADescriptor is stricter than olm-spec-descriptors and olm-status-descriptors,
// which check the fields of examples: every field of the schemas has a descriptor with a text, and
// there are no others.
func TestEveryFieldHasADescriptor(t *testing.T) {
	bundle := load(t)
	for _, kind := range bundle.CSV.Spec.CustomResourceDefinitions.Owned {
		schema := storedSchema(t, bundle, kind.Kind)
		var settings, states []string
		for _, each := range kind.SpecDescriptors {
			settings = append(settings, each.Path)
			if each.Description == "" || each.DisplayName == "" {
				t.Errorf("%s: spec.%s has no text", kind.Kind, each.Path)
			}
		}
		for _, each := range kind.StatusDescriptors {
			states = append(states, each.Path)
			if each.Description == "" || each.DisplayName == "" {
				t.Errorf("%s: status.%s has no text", kind.Kind, each.Path)
			}
		}
		if diff := cmp.Diff(paths(schema.Properties["spec"]), settings); diff != "" {
			t.Errorf("%s: spec (-fields +descriptors):\n%s", kind.Kind, diff)
		}
		if diff := cmp.Diff(paths(schema.Properties["status"]), states); diff != "" {
			t.Errorf("%s: status (-fields +descriptors):\n%s", kind.Kind, diff)
		}
	}
}

// paths returns the paths of all fields, parents first.
func paths(schema apiextensionsv1.JSONSchemaProps) []string {
	var result []string
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		property := schema.Properties[name]
		result = append(result, name)
		if kubernetes[name] {
			continue
		}
		for _, inner := range paths(property) {
			result = append(result, name+"."+inner)
		}
		if property.Items != nil {
			for _, inner := range paths(*property.Items.Schema) {
				result = append(result, name+"[0]."+inner)
			}
		}
	}
	return result
}

func storedSchema(t *testing.T, bundle *apimanifests.Bundle, kind string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	for _, definition := range bundle.V1CRDs {
		if definition.Spec.Names.Kind != kind {
			continue
		}
		for _, version := range definition.Spec.Versions {
			if version.Storage {
				return version.Schema.OpenAPIV3Schema
			}
		}
	}
	t.Fatalf("no CustomResourceDefinition of kind %s", kind)
	return nil
}

// TestFormat checks the format that `opm` and OLM accept: manifests with one object each, of
// supported kinds, and an image whose labels equal annotations.yaml.
func TestFormat(t *testing.T) {
	entries, err := os.ReadDir(filepath.Join(bundleDir, "manifests"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(bundleDir, "manifests", entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		object := unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &object.Object); err != nil {
			t.Errorf("%s: %v", entry.Name(), err)
		}
		if kind := object.GetKind(); kind != "ClusterServiceVersion" && !carried[kind] {
			t.Errorf("%s: OLM does not know the kind %s", entry.Name(), kind)
		}
		if strings.Contains(string(text), "\n---\n") || object.GetNamespace() != "" || strings.HasPrefix(entry.Name(), ".") {
			t.Errorf("%s: several objects, a namespace, or a hidden file", entry.Name())
		}
	}
	wanted := struct{ Annotations map[string]string }{}
	text, err := os.ReadFile(filepath.Join(bundleDir, "metadata", "annotations.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, &wanted); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wanted.Annotations, labels(t)); diff != "" {
		t.Errorf("labels of the image (-annotations.yaml +bundle.Dockerfile):\n%s", diff)
	}
}

// labels returns the labels of the bundle's image.
func labels(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(bundleDir, "bundle.Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	result := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if label, ok := strings.CutPrefix(strings.TrimSpace(line), "LABEL "); ok {
			key, value, _ := strings.Cut(label, "=")
			result[key] = value
		}
	}
	return result
}
