// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package published

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// Read returns all CustomResourceDefinitions of the projects, sorted by name.
func Read(ctx context.Context, projects ...Project) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var found []*apiextensionsv1.CustomResourceDefinition
	for _, project := range projects {
		dir, err := project.dir(ctx)
		if err != nil {
			return nil, err
		}
		more, err := inFolder(filepath.Join(dir, project.Folder))
		if err != nil {
			return nil, fmt.Errorf("reading the definitions of %s: %w", project.Module, err)
		}
		found = append(found, more...)
	}
	slices.SortFunc(found, func(a, b *apiextensionsv1.CustomResourceDefinition) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

// dir downloads the module if necessary, and returns its folder.
func (p Project) dir(ctx context.Context) (string, error) {
	at := p.Module + "@" + p.Version
	download := exec.CommandContext(ctx, "go", "mod", "download", "-json", at)
	// Run outside of every module, so that no go.mod affects the download.
	download.Dir, download.Stderr = os.TempDir(), os.Stderr
	text, err := download.Output()
	if err != nil {
		return "", fmt.Errorf("downloading %s: %w", at, err)
	}
	var module struct{ Dir, Sum string }
	if err := json.Unmarshal(text, &module); err != nil {
		return "", fmt.Errorf("downloading %s: %w", at, err)
	}
	if module.Sum != p.Sum {
		return "", fmt.Errorf("downloading %s: its checksum is %s, not %s", at, module.Sum, p.Sum)
	}
	return module.Dir, nil
}

func inFolder(folder string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var found []*apiextensionsv1.CustomResourceDefinition
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for document := range bytes.SplitSeq(text, []byte("\n---")) {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			// Skip other kinds, and templates.
			if yaml.Unmarshal(document, crd) == nil && crd.Kind == "CustomResourceDefinition" && crd.Spec.Versions != nil {
				found = append(found, crd)
			}
		}
		return nil
	})
	return found, err
}
