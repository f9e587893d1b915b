// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/conversion/shape"
	"github.com/conversion-operator/conversion-operator/internal/conversion/shape/internal/form"
	"github.com/conversion-operator/conversion-operator/internal/conversion/shape/strip"
	"github.com/conversion-operator/conversion-operator/internal/test/published" //nolint:depguard // the schemas of public projects are there
)

// size is the size of schemas before and after stripping, also compressed.
type size struct{ versions, before, after, beforeGzip, afterGzip, largest int }

// TestPublished strips and reads the schemas of public projects, and prints their sizes.
func TestPublished(t *testing.T) {
	for _, project := range published.All {
		crds, err := published.Read(t.Context(), project)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(project.Module, measured(t, crds))
	}
}

// TestOfTheProject strips and reads the schemas of this repository, without what is in bin.
func TestOfTheProject(t *testing.T) {
	var crds []*apiextensionsv1.CustomResourceDefinition
	err := errors.Join(readDefinitions("../../../config", &crds), readDefinitions("../../../internal", &crds))
	if err != nil || len(crds) == 0 {
		t.Fatal(len(crds), err)
	}
	t.Logf("%d definitions: %+v", len(crds), measured(t, crds))
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

func measured(t *testing.T, crds []*apiextensionsv1.CustomResourceDefinition) string {
	var total size
	for _, crd := range crds {
		for _, version := range crd.Spec.Versions {
			if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
				continue
			}
			before, err := json.Marshal(version.Schema.OpenAPIV3Schema)
			if err != nil {
				t.Fatal(err)
			}
			after := strippedTwice(t, crd.Name, version.Schema.OpenAPIV3Schema)
			total.versions++
			total.before, total.after = total.before+len(before), total.after+len(after)
			total.beforeGzip, total.afterGzip = total.beforeGzip+compressed(before), total.afterGzip+compressed(after)
			total.largest = max(total.largest, len(after))
		}
	}
	text, _ := json.Marshal(map[string]int{"versions": total.versions, "before": total.before, "after": total.after,
		"before gzip": total.beforeGzip, "after gzip": total.afterGzip, "largest after": total.largest})
	return string(text)
}

// strippedTwice returns the stripped schema. It must be the same each time, also if it is read and
// stripped again.
func strippedTwice(t *testing.T, name string, s *props) []byte {
	text, err := strip.Of(s)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if again, _ := strip.Of(s.DeepCopy()); !bytes.Equal(text, again) {
		t.Errorf("%s: other bytes for the same schema", name)
	}
	if _, err := shape.Read(text); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	node := &form.Node{}
	if err := json.Unmarshal(text, node); err != nil {
		t.Fatal(err)
	}
	if again, err := form.Encode(node); err != nil || !bytes.Equal(text, again) {
		t.Errorf("%s: other bytes when read and written again: %v", name, err)
	}
	return text
}

func compressed(text []byte) int {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if _, err := w.Write(text); err != nil {
		return 0
	}
	if w.Close() != nil {
		return 0
	}
	return out.Len()
}
