// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape/internal/form"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape/strip"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/published" //nolint:depguard // the schemas of public projects are there
)

// TestPublished strips and reads the schemas of public projects.
func TestPublished(t *testing.T) {
	for _, project := range published.All {
		crds, err := published.Read(t.Context(), project)
		expect.NoError(t, err)
		stripAndRead(t, crds)
	}
}

// TestOfTheProject strips and reads the schemas of this repository, without what is in bin.
func TestOfTheProject(t *testing.T) {
	var crds []*apiextensionsv1.CustomResourceDefinition
	err := errors.Join(readDefinitions("../../../../config", &crds), readDefinitions("../../..", &crds))
	if err != nil || len(crds) == 0 {
		t.Fatal(len(crds), err)
	}
	stripAndRead(t, crds)
}

// readDefinitions adds the definitions in the files of a folder.
func readDefinitions(folder string, crds *[]*apiextensionsv1.CustomResourceDefinition) error {
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		for document := range bytes.SplitSeq(text, []byte("\n---")) {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if yaml.Unmarshal(document, crd) == nil && crd.Kind == "CustomResourceDefinition" && crd.APIVersion == "apiextensions.k8s.io/v1" {
				*crds = append(*crds, crd)
			}
		}
		return err
	})
}

// stripAndRead strips and reads all schemas. A stripped schema must be the same each time, also if it is read and
// written again.
func stripAndRead(t *testing.T, crds []*apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
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
			node := &form.Node{}
			expect.NoError(t, json.Unmarshal(text, node))
			if again, err := form.Encode(node); err != nil || !bytes.Equal(text, again) {
				t.Errorf("%s: other bytes when read and written again: %v", crd.Name, err)
			}
		}
	}
}
