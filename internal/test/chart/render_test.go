// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	release "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

const (
	config = "../../../config"
	folder = config + "/chart"
)

type values = map[string]any

// objects are objects by kind, namespace and name.
type objects map[string]unstructured.Unstructured

// optionalKinds are those that the chart installs only on clusters that serve them.
var optionalKinds = []string{
	"admissionregistration.k8s.io/v1/MutatingAdmissionPolicy", "admissionregistration.k8s.io/v1/MutatingAdmissionPolicyBinding",
}

// render runs `helm template` for the release operator.
func render(namespace string, with values, apiVersions ...string) (*release.Release, error) {
	chart, err := loader.Load(folder)
	if err != nil {
		return nil, err
	}
	install := action.NewInstall(action.NewConfiguration())
	install.DryRunStrategy, install.APIVersions = action.DryRunClient, apiVersions
	install.ReleaseName, install.Namespace = "operator", namespace
	if install.KubeVersion, err = common.ParseKubeVersion("v1.37.0"); err != nil {
		return nil, err
	}
	rendered, err := install.Run(chart, with)
	if err != nil {
		return nil, err
	}
	return rendered.(*release.Release), nil //nolint:forcetypeassert // the only type
}

// helm returns the rendered objects in the namespace of config/default.
func helm(t *testing.T, with values, apiVersions ...string) objects {
	t.Helper()
	rendered, err := render("conversion-system", with, apiVersions...)
	expect.NoError(t, err)
	return decode(t, rendered.Manifest)
}

// decode reads a stream of documents.
func decode(t *testing.T, stream string) objects {
	t.Helper()
	all := objects{}
	for document := range strings.SplitSeq("\n"+stream, "\n---\n") {
		object := unstructured.Unstructured{}
		text, err := yaml.YAMLToJSONStrict([]byte(document))
		expect.NoError(t, err)
		if string(text) == "null" {
			continue
		}
		expect.NoError(t, object.UnmarshalJSON(text))
		name := strings.Join([]string{object.GetKind(), object.GetNamespace(), object.GetName()}, " ")
		if _, twice := all[name]; twice {
			t.Errorf("%s is rendered twice", name)
		}
		all[name] = object
	}
	return all
}

// kustomize returns the objects of a folder of config/ with components, without the namespace, which
// the user of Helm creates.
func kustomize(t *testing.T, of string, components []string) objects {
	t.Helper()
	folder, err := filepath.EvalSymlinks(t.TempDir())
	expect.NoError(t, err)
	root, err := filepath.Abs(config)
	expect.NoError(t, err)
	relative, err := filepath.Rel(folder, root)
	expect.NoError(t, err)
	text := "resources:\n- " + filepath.Join(relative, of) + "\ncomponents:\n"
	for _, component := range components {
		text += "- " + filepath.Join(relative, "components", component) + "\n"
	}
	expect.NoError(t, os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600))
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	expect.NoError(t, err)
	stream, err := rendered.AsYaml()
	expect.NoError(t, err)
	all := decode(t, string(stream))
	delete(all, "Namespace  conversion-system")
	return all
}

// valuesOf are the values that install a component of config/components.
func valuesOf(component string) values {
	switch component {
	case "granted-rights":
		return values{"rights": "granted"}
	case "single-replica":
		return values{"replicas": 1}
	}
	first, rest, _ := strings.Cut(component, "-")
	if rest != "" {
		rest = strings.ToUpper(rest[:1]) + rest[1:]
	}
	return values{first + rest: values{"enabled": true}}
}

// TestSameAsKustomize: with the values of components, the chart has exactly the objects of
// config/default with these components: each alone, all, all but one, and those of each overlay.
func TestSameAsKustomize(t *testing.T) {
	components := namesIn(t, "components")
	check(t, "default", nil)
	check(t, "default", components)
	for _, one := range components {
		check(t, "default", []string{one})
		check(t, "default", slices.DeleteFunc(slices.Clone(components), func(each string) bool { return each == one }))
	}
	for _, overlay := range namesIn(t, "overlays") {
		if overlay != "olm" { // what a bundle lacks
			check(t, filepath.Join("overlays", overlay), []string{overlay})
		}
	}
}

// check compares config/default with components, or an overlay that has them.
func check(t *testing.T, of string, components []string) {
	t.Helper()
	components = ordered(components)
	t.Run(of+" "+strings.Join(components, " "), func(t *testing.T) {
		with := values{"keepConversion": values{"enabled": false}} // the only component that the chart has by default
		for _, component := range components {
			maps.Copy(with, valuesOf(component)) // the schema refuses a value that is not there
		}
		if of != "default" {
			components = nil
		}
		got := helm(t, with, optionalKinds...)
		for _, object := range got {
			withoutHelm(object)
		}
		if diff := cmp.Diff(kustomize(t, of, components), got); diff != "" {
			t.Errorf("objects (-kustomize +helm):\n%s", diff)
		}
	})
}

// withoutHelm removes what only charts have: their labels, and the annotation of objects that stay.
func withoutHelm(object unstructured.Unstructured) {
	for field, keys := range map[string][]string{
		"labels": {"helm.sh/chart", "app.kubernetes.io/instance", "app.kubernetes.io/version"}, "annotations": {"helm.sh/resource-policy"},
	} {
		for _, key := range keys {
			unstructured.RemoveNestedField(object.Object, "metadata", field, key)
		}
		if left, _, _ := unstructured.NestedMap(object.Object, "metadata", field); len(left) == 0 {
			unstructured.RemoveNestedField(object.Object, "metadata", field)
		}
	}
}

// ordered returns components with those that they need, in an order that kustomize accepts.
func ordered(components []string) []string {
	result := slices.Clone(components)
	if slices.Contains(result, "metrics-certificate") {
		result = append(result, "cert-manager", "prometheus")
	}
	later := func(each string) string { return map[string]string{"metrics-certificate": "~", "openshift": "~"}[each] }
	slices.SortFunc(result, func(a, b string) int { return strings.Compare(later(a)+a, later(b)+b) })
	return slices.Compact(result)
}

func namesIn(t *testing.T, of string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(config, of))
	expect.NoError(t, err)
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}
