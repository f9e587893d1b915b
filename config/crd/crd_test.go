// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// mostBytes is less than the 256 KiB that all annotations of an object may have (TotalAnnotationSizeLimitB
// of k8s.io/apimachinery), so that users have room for annotations of their own.
const mostBytes = 240_000

// TestTwoVersionsFit: kubectl apply stores a definition as JSON in an annotation, also one with two versions.
func TestTwoVersionsFit(t *testing.T) {
	files, err := filepath.Glob("bases/*.yaml")
	expect.NoError(t, err)
	expect.Equal(t, "definitions", 2, len(files))
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // a file of the checkout
		expect.NoError(t, err)
		definition := &apiextensionsv1.CustomResourceDefinition{}
		expect.NoError(t, yaml.UnmarshalStrict(text, definition))
		one := definition.Spec.Versions[0]
		definition.Spec.Versions = append(definition.Spec.Versions, one)
		two, err := json.Marshal(definition)
		expect.NoError(t, err)
		if len(two) > mostBytes {
			t.Errorf("%s has %d bytes as JSON with two versions, more than %d: shorten comments in api/v1alpha1, or name more fields in internal/dev/tools/crd", file, len(two), mostBytes)
		}
		t.Logf("%s: %d bytes with two versions", file, len(two))
	}
}
