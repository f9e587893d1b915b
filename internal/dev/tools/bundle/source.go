// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// defaultImage is the image's name in config/manager.
const defaultImage = "localhost/conversion-operator:dev"

// source is the input of a bundle.
type source struct {
	// objects are the objects of config/manifests, in its order.
	objects []unstructured.Unstructured
	// base has the data for catalogues.
	base      *operatorsv1alpha1.ClusterServiceVersion
	icon      []byte
	examples  []unstructured.Unstructured
	scorecard []byte
	image     string
}

// samples are the examples that consoles offer for a new policy.
var samples = []string{
	"crontab-hostport/2-policy.yaml",
	"crontab-cronspec/2-policy.yaml",
	"crontab-image/policy.yaml",
}

func readSource(root, image string) (*source, error) {
	config := filepath.Join(root, "config")
	bases := filepath.Join(config, "manifests", "bases")
	result := &source{image: cmp.Or(image, defaultImage)}
	var errs [4]error
	result.objects, errs[0] = renderObjects(filepath.Join(config, "manifests"), result.image)
	result.base, errs[1] = readBase(filepath.Join(bases, packageName+".clusterserviceversion.yaml"))
	result.icon, errs[2] = os.ReadFile(filepath.Join(bases, "icon.svg"))
	result.scorecard, errs[3] = os.ReadFile(filepath.Join(config, "scorecard", "config.yaml"))
	for _, sample := range samples {
		example, err := readObject(filepath.Join(config, "samples", filepath.FromSlash(sample)))
		if err != nil {
			return nil, err
		}
		result.examples = append(result.examples, example)
	}
	return result, errors.Join(errs[:]...)
}

// renderObjects renders a kustomization with the image in place of the default one.
func renderObjects(dir, image string) ([]unstructured.Unstructured, error) {
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, err
	}
	var result []unstructured.Unstructured
	for _, resource := range rendered.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			return nil, err
		}
		object, err := decode(bytes.ReplaceAll(text, []byte(defaultImage), []byte(image)))
		if err != nil {
			return nil, err
		}
		result = append(result, object)
	}
	return result, nil
}

func readBase(file string) (*operatorsv1alpha1.ClusterServiceVersion, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	result := &operatorsv1alpha1.ClusterServiceVersion{}
	if err := yaml.UnmarshalStrict(text, result); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return result, nil
}

func readObject(file string) (unstructured.Unstructured, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return unstructured.Unstructured{}, err
	}
	result, err := decode(text)
	if err != nil {
		return result, fmt.Errorf("%s: %w", file, err)
	}
	return result, nil
}

// decode decodes one object like API servers, with integers.
func decode(text []byte) (unstructured.Unstructured, error) {
	result := unstructured.Unstructured{}
	object, err := yaml.YAMLToJSON(text)
	if err != nil {
		return result, err
	}
	return result, result.UnmarshalJSON(object)
}

// files are the bundle's files by path.
type files map[string][]byte

// write replaces the content of the directory by the files.
func (f files) write(dir string) error {
	if dir == "" {
		return errors.New("--output is empty: set it to the directory of the bundle")
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	for name, content := range f {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
