// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apimanifests "github.com/operator-framework/api/pkg/manifests"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func load(t *testing.T) *apimanifests.Bundle {
	t.Helper()
	bundle, err := apimanifests.GetBundleFromDir(bundleDir)
	noError(t, err)
	return bundle
}

func examples(t *testing.T, csv *operatorsv1alpha1.ClusterServiceVersion) []unstructured.Unstructured {
	t.Helper()
	var result []unstructured.Unstructured
	noError(t, json.Unmarshal([]byte(csv.Annotations["alm-examples"]), &result))
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

// TestKindsAreDescribed is olm-crds-have-resources, olm-spec-descriptors and olm-status-descriptors: each
// kind lists its resources, and each descriptor has a text. There is one for each field, because they are
// generated from the schema.
func TestKindsAreDescribed(t *testing.T) {
	bundle := load(t)
	for _, kind := range bundle.CSV.Spec.CustomResourceDefinitions.Owned {
		if len(kind.Resources) == 0 || kind.Description == "" || kind.DisplayName == "" {
			t.Errorf("%s lacks resources, description or displayName", kind.Name)
		}
		for _, each := range kind.SpecDescriptors {
			if each.Description == "" || each.DisplayName == "" {
				t.Errorf("%s: spec.%s has no text", kind.Kind, each.Path)
			}
		}
		for _, each := range kind.StatusDescriptors {
			if each.Description == "" || each.DisplayName == "" {
				t.Errorf("%s: status.%s has no text", kind.Kind, each.Path)
			}
		}
	}
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
// supported kinds.
func TestFormat(t *testing.T) {
	entries, err := os.ReadDir(filepath.Join(bundleDir, "manifests"))
	noError(t, err)
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(bundleDir, "manifests", entry.Name()))
		noError(t, err)
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
}
