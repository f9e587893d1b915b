// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kindtest provides fixtures for tests of the compiler and the engine: the kind Widget, and
// the converter of a ruleset.
package kindtest

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// From decodes YAML strictly.
func From[T any](t testing.TB, text string) *T {
	t.Helper()
	value := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), value); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return value
}

// Widgets returns a CustomResourceDefinition of the kind Widget. Versions has the properties of each
// version's objects, as YAML in flow style.
func Widgets(t testing.TB, versions map[string]string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name, crd.Spec.Group = "widgets.example.com", "example.com"
	crd.Spec.Names.Kind, crd.Spec.Scope = "Widget", apiextensionsv1.NamespaceScoped
	for version, properties := range versions {
		AddVersion(crd, version, From[apiextensionsv1.JSONSchemaProps](t, "{type: object, properties: {"+properties+"}}"))
	}
	return crd
}

// AddVersion adds a version with a schema. Versions are sorted by name.
func AddVersion(crd *apiextensionsv1.CustomResourceDefinition, name string, props *apiextensionsv1.JSONSchemaProps) {
	crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
		Name: name, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: props},
	})
	slices.SortFunc(crd.Spec.Versions, func(a, b apiextensionsv1.CustomResourceDefinitionVersion) int {
		return strings.Compare(a.Name, b.Name)
	})
}

// Structural returns the structural form of a schema.
func Structural(t testing.TB, props *apiextensionsv1.JSONSchemaProps) *schema.Structural {
	t.Helper()
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, internal, nil); err != nil {
		t.Fatal(err)
	}
	structural, err := schema.NewStructural(internal)
	if err != nil {
		t.Fatal(err)
	}
	return structural
}

// Converter returns a converter for a ruleset. It encodes and loads the ruleset first, as a converter
// pod does.
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
