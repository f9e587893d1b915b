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

// installed configures what Helm renders.
type installed struct {
	release, namespace string
	values             values
	apiVersions        []string
}

// render runs `helm template`.
func (i installed) render() (*release.Release, error) {
	chart, err := loader.Load(folder)
	if err != nil {
		return nil, err
	}
	install := action.NewInstall(action.NewConfiguration())
	install.DryRunStrategy, install.APIVersions = action.DryRunClient, i.apiVersions
	install.ReleaseName, install.Namespace = i.release, i.namespace
	if install.KubeVersion, err = common.ParseKubeVersion("v1.37.0"); err != nil {
		return nil, err
	}
	rendered, err := install.Run(chart, i.values)
	if err != nil {
		return nil, err
	}
	return rendered.(*release.Release), nil //nolint:forcetypeassert // the only type
}

// helm returns the rendered objects in the namespace of config/default, as kustomize would render
// them.
func helm(t *testing.T, with values, apiVersions ...string) objects {
	t.Helper()
	rendered, err := installed{"conversion-operator", "conversion-system", with, apiVersions}.render()
	expect.NoError(t, err)
	all := decode(t, rendered.Manifest)
	for name, object := range all {
		withoutHelm(object)
		all[name] = object
	}
	return all
}

// withoutHelm removes what only charts have: their labels, and the annotation of
// CustomResourceDefinitions that stay.
func withoutHelm(object unstructured.Unstructured) {
	labels, annotations := object.GetLabels(), object.GetAnnotations()
	for _, label := range []string{"helm.sh/chart", "app.kubernetes.io/instance", "app.kubernetes.io/version"} {
		delete(labels, label)
	}
	delete(annotations, "helm.sh/resource-policy")
	// An empty map is nothing.
	unstructured.RemoveNestedField(object.Object, "metadata", "labels")
	unstructured.RemoveNestedField(object.Object, "metadata", "annotations")
	if len(labels) > 0 {
		object.SetLabels(labels)
	}
	if len(annotations) > 0 {
		object.SetAnnotations(annotations)
	}
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

// kustomize returns the objects of a folder of config/ with components, without the namespace,
// which the user of Helm creates.
func kustomize(t *testing.T, of string, components ...string) objects {
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
	maps.DeleteFunc(all, func(_ string, object unstructured.Unstructured) bool { return object.GetKind() == "Namespace" })
	return all
}

// componentValues are the values that install the components of config/components.
var componentValues = map[string]values{
	"cert-manager":        {"certManager": values{"enabled": true}},
	"critical":            {"critical": values{"enabled": true}},
	"crossplane":          {"crossplane": values{"enabled": true}},
	"dependents":          {"dependents": values{"enabled": true}},
	"grafana":             {"grafana": values{"enabled": true}},
	"granted-rights":      {"rights": "granted"},
	"keep-conversion":     {"keepConversion": values{"enabled": true}},
	"metrics-certificate": {"metricsCertificate": values{"enabled": true}},
	"network-policies":    {"networkPolicies": values{"enabled": true}},
	"openshift":           {"openshift": values{"enabled": true}},
	"prometheus":          {"prometheus": values{"enabled": true}},
	"single-replica":      {"replicas": 1},
	"uninstall-guard":     {"uninstallGuard": values{"enabled": true}},
}

// TestSameAsKustomize: with the values of components, the chart has exactly the objects of config/default
// with these components, and of each overlay.
func TestSameAsKustomize(t *testing.T) {
	for name, components := range installations(t) {
		t.Run(name, func(t *testing.T) {
			with := values{"keepConversion": values{"enabled": false}} // the only component that the chart has by default
			for _, component := range components {
				value, has := componentValues[component]
				if !has {
					t.Fatalf("no value installs the component %s: add one to values.yaml, values.schema.json and this test", component)
				}
				maps.Copy(with, value)
			}
			of, beside := "default", components
			if overlay, is := strings.CutPrefix(name, "overlay "); is {
				of, beside = filepath.Join("overlays", overlay), nil
			}
			if diff := cmp.Diff(kustomize(t, of, beside...), helm(t, with, optionalKinds...)); diff != "" {
				t.Errorf("objects (-kustomize +helm):\n%s", diff)
			}
		})
	}
}

// optionalKinds are those that the chart installs only on clusters that serve them.
var optionalKinds = []string{
	"admissionregistration.k8s.io/v1/MutatingAdmissionPolicy", "admissionregistration.k8s.io/v1/MutatingAdmissionPolicyBinding",
}

// installations returns the components of each tested installation: each component with those that it
// needs, each pair, all of them, and those of the overlays.
func installations(t *testing.T) map[string][]string {
	t.Helper()
	result := map[string][]string{"default": nil}
	components := namesIn(t, "components")
	all := ordered(components)
	result["all"] = all
	for i, one := range components {
		result[one] = ordered([]string{one})
		for _, other := range components[i+1:] {
			result[one+" and "+other] = ordered([]string{one, other})
		}
	}
	for _, overlay := range namesIn(t, "overlays") {
		if overlay != "olm" { // what a bundle lacks
			result["overlay "+overlay] = []string{overlay}
		}
	}
	return result
}

// ordered returns components with those that they need, in an order that kustomize accepts.
func ordered(components []string) []string {
	needed := map[string]bool{}
	for _, component := range components {
		needed[component] = true
		if component == "metrics-certificate" {
			needed["cert-manager"], needed["prometheus"] = true, true
		}
	}
	last := func(component string) int {
		return slices.Index([]string{"metrics-certificate", "openshift"}, component)
	}
	return slices.SortedFunc(maps.Keys(needed), func(a, b string) int {
		if last(a) != last(b) {
			return last(a) - last(b)
		}
		return strings.Compare(a, b)
	})
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

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	expect.NoError(t, err)
	return text
}
