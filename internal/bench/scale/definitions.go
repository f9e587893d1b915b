// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// projects are Go modules with CustomResourceDefinitions of many kinds and sizes,
// and the folders where they are. Their versions are those of realWorld.
var projects = map[string]string{
	"sigs.k8s.io/cluster-api":      "config/crd/bases",
	"sigs.k8s.io/karpenter":        "pkg/apis/crds",
	"sigs.k8s.io/kueue":            "config/components/crd/bases",
	"github.com/tektoncd/pipeline": "config",
}

// realWorld is the module that needs the projects.
const realWorld = "internal/test/realworld"

// The versions of a definition that has a policy.
const (
	oldVersion = "v1alpha1"
	newVersion = "v1"
)

// definitions makes count definitions, each with a group of its own, by turns of
// the schemas of all projects. The first so many as convert have two versions.
func definitions(ctx context.Context, count, convert int) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	sources, err := published(ctx)
	if err != nil {
		return nil, err
	}
	made := make([]*apiextensionsv1.CustomResourceDefinition, count)
	for i := range made {
		made[i] = definition(sources[i%len(sources)], i, i < convert)
	}
	return made, nil
}

func definition(source *apiextensionsv1.CustomResourceDefinition, number int, converts bool) *apiextensionsv1.CustomResourceDefinition {
	group := fmt.Sprintf("scale-%04d.example.com", number)
	spec := *source.Spec.DeepCopy()
	latest := spec.Versions[len(spec.Versions)-1]
	latest.Name, latest.Served, latest.Storage, latest.Deprecated, latest.DeprecationWarning = newVersion, true, true, false, nil
	spec.Group, spec.Conversion, spec.Versions = group, nil, []apiextensionsv1.CustomResourceDefinitionVersion{latest}
	spec.Names.Categories = nil
	if converts {
		old := *latest.DeepCopy()
		old.Name, old.Storage = oldVersion, false
		spec.Versions = append(spec.Versions, old)
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: spec.Names.Plural + "." + group, Annotations: applied(&spec)},
		Spec:       spec,
	}
}

// applied is the annotation that kubectl apply leaves, where it is not too large.
func applied(spec *apiextensionsv1.CustomResourceDefinitionSpec) map[string]string {
	text, err := json.Marshal(spec)
	const most = 200 << 10
	if err != nil || len(text) > most {
		return nil
	}
	return map[string]string{"kubectl.kubernetes.io/last-applied-configuration": string(text)}
}

// published reads all definitions of the projects, in the order of their names.
func published(ctx context.Context) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var found []*apiextensionsv1.CustomResourceDefinition
	for module, folder := range projects {
		dir, err := moduleDir(ctx, module)
		if err != nil {
			return nil, err
		}
		more, err := inFolder(filepath.Join(dir, folder))
		if err != nil {
			return nil, fmt.Errorf("reading the definitions of %s: %w", module, err)
		}
		found = append(found, more...)
	}
	slices.SortFunc(found, func(a, b *apiextensionsv1.CustomResourceDefinition) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

func moduleDir(ctx context.Context, module string) (string, error) {
	download := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	download.Dir, download.Stderr = realWorld, os.Stderr
	text, err := download.Output()
	if err != nil {
		return "", fmt.Errorf("downloading %s: %w", module, err)
	}
	var found struct{ Dir string }
	return found.Dir, json.Unmarshal(text, &found)
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
			// Other kinds, and templates, are not what is looked for.
			if yaml.Unmarshal(document, crd) == nil && crd.Kind == "CustomResourceDefinition" && crd.Spec.Versions != nil {
				found = append(found, crd)
			}
		}
		return nil
	})
	return found, err
}
