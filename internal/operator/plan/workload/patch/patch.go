// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/filters/patchjson6902"
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
	factory, patched := resource.NewFactory(&hasher.Hasher{}), resmap.New()
	for _, object := range objects {
		loaded, err := factory.FromMap(object)
		if err != nil {
			return nil, err
		}
		if err := patched.Append(loaded); err != nil {
			return nil, err
		}
	}
	selected, err := selectFrom(patched, patch.Target)
	if err != nil {
		return nil, err
	}
	kinds := kindsOf(patched)
	if operations := jsonPatch(patch.Patch); operations != "" {
		err = applyJSON(selected, operations)
	} else {
		err = applyStrategic(factory, patched, selected, patch.Patch)
	}
	if err != nil {
		return nil, err
	}
	if err := sameKinds(kinds, kindsOf(patched)); err != nil {
		return nil, err
	}
	return contents(patched)
}

// selectFrom are the objects that a target selects, nil where there is no target.
func selectFrom(objects resmap.ResMap, target *v1alpha1.PatchTarget) ([]*resource.Resource, error) {
	if target == nil {
		return nil, nil
	}
	selected, err := objects.Select(types.Selector{
		ResId: resid.ResId{
			Gvk:  resid.Gvk{Kind: target.Kind},
			Name: target.Name,
		},
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("target: %w", oneLine(err))
	case len(selected) == 0:
		return nil, fmt.Errorf("target selects none of %s", names(objects))
	}
	return selected, nil
}

// jsonPatch is a JSON patch as JSON, empty where it is none.
func jsonPatch(patch string) string {
	var operations []any
	if yaml.Unmarshal([]byte(patch), &operations) != nil || operations == nil {
		return ""
	}
	text, err := yaml.YAMLToJSON([]byte(patch))
	if err != nil {
		return ""
	}
	return string(text)
}

func applyJSON(selected []*resource.Resource, operations string) error {
	if selected == nil {
		return errors.New("a JSON patch needs a target")
	}
	for _, object := range selected {
		if err := object.ApplyFilter(patchjson6902.Filter{Patch: operations}); err != nil {
			return oneLine(err)
		}
	}
	return nil
}

// applyStrategic applies a strategic merge patch to what was selected, or else to
// the object that it names.
func applyStrategic(factory *resource.Factory, objects resmap.ResMap, selected []*resource.Resource, text string) error {
	patches, err := factory.SliceFromBytes([]byte(text))
	if err != nil || len(patches) == 0 {
		return errors.New("it is neither a JSON patch nor a strategic merge patch; the latter has apiVersion, kind and metadata.name even if it has a target")
	}
	if len(patches) > 1 {
		return errors.New("it has several documents: write a patch for each of them")
	}
	if selected == nil {
		named, err := objects.GetById(patches[0].OrgId())
		if err != nil {
			return fmt.Errorf("its object does not exist: give it a target that selects one of %s", names(objects))
		}
		selected = []*resource.Resource{named}
	}
	if err := objects.ApplySmPatch(resource.MakeIdSet(selected), patches[0]); err != nil {
		return oneLine(err)
	}
	return nil
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

func names(objects resmap.ResMap) string {
	var names []string
	for _, object := range objects.Resources() {
		names = append(names, object.GetKind()+" "+object.GetName())
	}
	return strings.Join(names, ", ")
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

// oneLine is an error that fits into a condition's message.
func oneLine(err error) error { return errors.New(strings.Join(strings.Fields(err.Error()), " ")) }
