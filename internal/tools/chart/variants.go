// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// needs are the components that another one has to come after. The first part is required, as
// kustomize refuses the component otherwise.
var needs = map[string]struct{ required, before []string }{
	"metrics-certificate": {required: []string{"cert-manager", "prometheus"}},
	"openshift":           {before: []string{"prometheus"}},
}

// identity identifies an object.
type identity struct{ apiVersion, kind, namespace, name string }

// rendered has what kustomize renders, by identity.
type rendered map[identity]object

type object struct {
	// source is the file of config/ with the object, such as rbac/role.yaml.
	source  string
	content map[string]any
}

// pair is what kustomize renders without and with one component: an object, or one field of it.
type pair[T any] struct {
	component     string
	without, with T
}

// variants renders the default, and each component twice: alone, and together with all components
// that do not require it. The latter shows what it changes in objects of other components.
func variants(config string) (rendered, []pair[rendered], error) {
	all, err := componentsOf(config)
	if err != nil {
		return nil, nil, err
	}
	render := remembering(config)
	plain, err := render(nil)
	if err != nil {
		return nil, nil, err
	}
	var pairs []pair[rendered]
	for _, component := range all {
		others := slices.DeleteFunc(slices.Clone(all), func(other string) bool {
			return other == component || slices.Contains(needs[other].required, component)
		})
		for _, context := range [][]string{needs[component].required, others} {
			one := pair[rendered]{component: component}
			if one.without, err = render(context); err != nil {
				return nil, nil, err
			}
			if one.with, err = render(ordered(append(slices.Clone(context), component))); err != nil {
				return nil, nil, err
			}
			pairs = append(pairs, one)
		}
	}
	return plain, pairs, nil
}

// remembering returns kustomize of a folder, which renders the same components once.
func remembering(config string) func(components []string) (rendered, error) {
	known := map[string]rendered{}
	return func(components []string) (rendered, error) {
		key := strings.Join(components, " ")
		if found, has := known[key]; has {
			return found, nil
		}
		var err error
		known[key], err = kustomize(config, components)
		return known[key], err
	}
}

// componentsOf lists the components, those that others need first.
func componentsOf(config string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(config, "components"))
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return ordered(names), nil
}

// ordered sorts components by name, and those with needs after the others.
func ordered(components []string) []string {
	slices.SortFunc(components, func(a, b string) int {
		_, later := needs[a]
		_, laterToo := needs[b]
		switch {
		case later && !laterToo:
			return 1
		case !later && laterToo:
			return -1
		}
		return strings.Compare(a, b)
	})
	return components
}

// kustomize renders config/default with components.
func kustomize(config string, components []string) (rendered, error) {
	folder, err := os.MkdirTemp("", "chart")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // a temporary folder
	if err := writeKustomization(folder, config, components); err != nil {
		return nil, err
	}
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, err
	}
	result := rendered{}
	for _, each := range resources.Resources() {
		origin, err := each.GetOrigin()
		if err != nil {
			return nil, err
		}
		source := origin.Path
		if source == "" { // made by a generator
			source = origin.ConfiguredIn
		}
		if err := each.SetOrigin(nil); err != nil {
			return nil, err
		}
		content, err := decode(each)
		if err != nil {
			return nil, err
		}
		_, source, _ = strings.Cut(filepath.ToSlash(source), "config/")
		result[identity{each.GetApiVersion(), each.GetKind(), each.GetNamespace(), each.GetName()}] = object{source, content}
	}
	return result, nil
}

// decode decodes an object like API servers, with integers.
func decode(from *resource.Resource) (map[string]any, error) {
	text, err := from.AsYAML()
	if err != nil {
		return nil, err
	}
	if text, err = yaml.YAMLToJSON(text); err != nil {
		return nil, err
	}
	content := map[string]any{}
	return content, json.Unmarshal(text, &content)
}

// writeKustomization writes a kustomization that refers to config, by relative paths, as kustomize
// requires.
func writeKustomization(folder, config string, components []string) error {
	absolute, err := filepath.Abs(config)
	if err != nil {
		return err
	}
	if folder, err = filepath.EvalSymlinks(folder); err != nil {
		return err
	}
	relative, err := filepath.Rel(folder, absolute)
	if err != nil {
		return err
	}
	relative = filepath.ToSlash(relative)
	folders := make([]string, 0, len(components))
	for _, component := range components {
		folders = append(folders, relative+"/components/"+component)
	}
	text, err := yaml.Marshal(types.Kustomization{
		BuildMetadata: []string{types.OriginAnnotations}, Resources: []string{relative + "/default"}, Components: folders})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "kustomization.yaml"), text, 0o600)
}
