// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kindtest has what tests of the compiler and of the engine begin with: the kind
// Widget, written as YAML, and the converter of a ruleset.
package kindtest

import (
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// From reads YAML strictly.
func From[T any](t testing.TB, text string) *T {
	t.Helper()
	value := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), value); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return value
}

// Widgets is a CustomResourceDefinition of the kind Widget, with the properties
// of each version's objects as YAML in flow style.
func Widgets(t testing.TB, versions map[string]string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name, crd.Spec.Group = "widgets.example.com", "example.com"
	crd.Spec.Names.Kind, crd.Spec.Scope = "Widget", apiextensionsv1.NamespaceScoped
	for version, properties := range versions {
		structure := From[apiextensionsv1.JSONSchemaProps](t, "{type: object, properties: {"+properties+"}}")
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: structure},
		})
	}
	slices.SortFunc(crd.Spec.Versions, func(a, b apiextensionsv1.CustomResourceDefinitionVersion) int {
		return strings.Compare(a.Name, b.Name)
	})
	return crd
}

// Converter converts by a ruleset that went through its file form, as it does on its way to
// a converter pod.
func Converter(t testing.TB, ruleset *conversion.Ruleset) *conversion.Converter {
	t.Helper()
	text, err := ruleset.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if ruleset, err = conversion.Load(text); err != nil {
		t.Fatal(err)
	}
	converter, err := conversion.NewConverter(ruleset)
	if err != nil {
		t.Fatal(err)
	}
	return converter
}
