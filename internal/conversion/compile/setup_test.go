// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// from reads YAML strictly.
func from[T any](t testing.TB, text string) *T {
	t.Helper()
	value := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), value); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return value
}

// widgets is a CustomResourceDefinition of the kind Widget, with the properties
// of each version's objects as YAML in flow style.
func widgets(t testing.TB, versions map[string]string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name, crd.Spec.Group = "widgets.example.com", "example.com"
	crd.Spec.Names.Kind, crd.Spec.Scope = "Widget", apiextensionsv1.NamespaceScoped
	for version, properties := range versions {
		structure := from[apiextensionsv1.JSONSchemaProps](t, "{type: object, properties: {"+properties+"}}")
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: structure},
		})
	}
	slices.SortFunc(crd.Spec.Versions, func(a, b apiextensionsv1.CustomResourceDefinitionVersion) int {
		return strings.Compare(a.Name, b.Name)
	})
	return crd
}

// between compiles rules between the spoke v1 and the hub v2.
func between(t testing.TB, v1, v2, rules string) Result {
	t.Helper()
	return Compile(widgets(t, map[string]string{"v1": v1, "v2": v2}),
		from[v1alpha1.DeclarativeConverter](t, "{hub: v2, spokes: [{version: v1, rules: ["+rules+"]}]}"))
}

// converterOf fails the test on what Compile refuses. The plan goes through its
// file form, as it does on its way to a converter pod.
func converterOf(t testing.TB, result Result) *conversion.Converter {
	t.Helper()
	if len(result.Errors) > 0 || result.Plan == nil {
		t.Fatalf("the rules are refused: %v, missing: %v", result.Errors, result.Missing)
	}
	text, err := result.Plan.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := conversion.Load(text)
	if err != nil {
		t.Fatal(err)
	}
	converter, err := conversion.NewConverter(plan)
	if err != nil {
		t.Fatal(err)
	}
	return converter
}
