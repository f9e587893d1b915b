// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	apimanifests "github.com/operator-framework/api/pkg/manifests"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func load(t *testing.T) *apimanifests.Bundle {
	t.Helper()
	bundle, err := apimanifests.GetBundleFromDir(bundleDir)
	noError(t, err)
	return bundle
}

// TestKindsAreDescribed is olm-crds-have-resources, olm-spec-descriptors and olm-status-descriptors of the
// scorecard: each kind lists its resources, and each descriptor has a text. There is one for each field,
// because they are generated from the schema. Its other tests are of the examples: tests of commands read
// these strictly.
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
