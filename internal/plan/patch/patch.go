// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/builtins"
	"sigs.k8s.io/kustomize/api/hasher"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// Apply returns the objects with a patch applied, in the same order. They share
// nothing with what came in.
func Apply(objects []map[string]any, patch v1alpha1.Patch) ([]map[string]any, error) {
	helpers := resmap.NewPluginHelpers(nil, nil, resmap.NewFactory(resource.NewFactory(&hasher.Hasher{})), nil)
	patched := resmap.New()
	for _, object := range objects {
		loaded, err := helpers.ResmapFactory().RF().FromMap(object)
		if err != nil {
			return nil, err
		}
		if err := patched.Append(loaded); err != nil {
			return nil, err
		}
	}
	kinds := kindsOf(patched)
	if err := apply(helpers, patched, &patch); err != nil {
		return nil, errors.New(explain(err, patched))
	}
	if err := sameKinds(kinds, kindsOf(patched)); err != nil {
		return nil, err
	}
	return contents(patched)
}

func apply(helpers *resmap.PluginHelpers, objects resmap.ResMap, patch *v1alpha1.Patch) error {
	target := selector(patch.Target)
	if target != nil {
		switch selected, err := objects.Select(*target); {
		case err != nil:
			return fmt.Errorf("target: %w", err)
		case len(selected) == 0:
			return fmt.Errorf("target selects none of %s", strings.Join(names(objects), ", "))
		}
	}
	config, err := yaml.Marshal(types.Patch{Patch: normal(patch.Patch), Target: target})
	if err != nil {
		return err
	}
	transformer := builtins.NewPatchTransformerPlugin()
	configurable, ok := transformer.(resmap.Configurable)
	if !ok {
		return errors.New("kustomize has another transformer than is expected of it")
	}
	if err := configurable.Config(helpers, config); err != nil {
		return err
	}
	return transformer.Transform(objects)
}

// normal turns a JSON patch into JSON: kustomize takes what begins with a bracket
// for JSON already, and YAML may begin with one too.
func normal(patch string) string {
	var operations []any
	if yaml.Unmarshal([]byte(patch), &operations) != nil {
		return patch
	}
	text, err := yaml.YAMLToJSON([]byte(patch))
	if err != nil {
		return patch
	}
	return string(text)
}

func selector(target *v1alpha1.PatchTarget) *types.Selector {
	if target == nil {
		return nil
	}
	return &types.Selector{
		ResId: resid.ResId{
			Gvk:  resid.Gvk{Group: target.Group, Version: target.Version, Kind: target.Kind},
			Name: target.Name,
		},
		LabelSelector: target.LabelSelector, AnnotationSelector: target.AnnotationSelector,
	}
}

func kindsOf(objects resmap.ResMap) []resid.Gvk {
	kinds := make([]resid.Gvk, 0, objects.Size())
	for _, object := range objects.Resources() {
		kinds = append(kinds, object.GetGvk())
	}
	return kinds
}

// sameKinds: objects are where they were, and are what they were.
func sameKinds(before, after []resid.Gvk) error {
	switch {
	case len(after) < len(before):
		return errors.New("it deletes an object that the converter needs")
	case !slices.Equal(before, after):
		return errors.New("it changes apiVersion or kind of an object")
	}
	return nil
}

func names(objects resmap.ResMap) []string {
	var names []string
	for _, object := range objects.Resources() {
		names = append(names, object.GetKind()+" "+object.GetName())
	}
	return names
}

// contents are the objects without the annotations that kustomize keeps to itself.
func contents(objects resmap.ResMap) ([]map[string]any, error) {
	objects.RemoveBuildAnnotations()
	results := make([]map[string]any, 0, objects.Size())
	for _, object := range objects.Resources() {
		result, err := object.Map()
		if err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	return results, nil
}

// explain says in the words of a policy what kustomize says in its own.
func explain(err error, objects resmap.ResMap) string {
	switch text := err.Error(); {
	case strings.HasPrefix(text, "unable to parse SM or JSON patch"):
		return "it is neither a JSON patch nor a strategic merge patch, which has apiVersion, kind and metadata.name even where it has a target"
	case strings.HasPrefix(text, "must specify a target"):
		return "a JSON patch needs a target"
	case strings.HasPrefix(text, "no resource matches"):
		return "it is for an object that there is not: give it a target that selects one of " + strings.Join(names(objects), ", ")
	default:
		text, _, _ = strings.Cut(text, ": [patch: ")
		return strings.Join(strings.Fields(text), " ")
	}
}
