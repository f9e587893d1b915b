// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape_test

import (
	"bytes"
	"encoding/json"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape/strip"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/published" //nolint:depguard // the schemas of public projects are there
)

// TestPublished strips and reads the schemas of public projects. A stripped schema must be the same each time, also if it is
// read and written again.
func TestPublished(t *testing.T) {
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, project := range published.All {
		all, err := published.Read(t.Context(), project)
		expect.NoError(t, err)
		crds = append(crds, all...)
	}
	for _, crd := range crds {
		for _, version := range crd.Spec.Versions {
			if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
				continue
			}
			text, err := strip.Of(version.Schema.OpenAPIV3Schema)
			if err != nil {
				t.Fatalf("%s: %v", crd.Name, err)
			}
			if again, _ := strip.Of(version.Schema.OpenAPIV3Schema.DeepCopy()); !bytes.Equal(text, again) {
				t.Errorf("%s: other bytes for the same schema", crd.Name)
			}
			if _, err := shape.Read(text); err != nil {
				t.Errorf("%s: %v", crd.Name, err)
			}
			again := &shape.Schema{}
			expect.NoError(t, json.Unmarshal(text, again))
			if again, err := json.Marshal(again); err != nil || !bytes.Equal(text, again) {
				t.Errorf("%s: other bytes when read and written again", crd.Name)
			}
		}
	}
}
