// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restrict_test

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/operator/crds/restrict"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// definition has the version v1 with these fields of spec, and v1beta1 without a schema.
func definition(t *testing.T, spec string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	schema := &apiextensionsv1.JSONSchemaProps{}
	expect.NoError(t, yaml.UnmarshalStrict([]byte("{type: object, properties: {spec: "+spec+"}}"), schema))
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{
		{Name: "v1beta1"}, {Name: "v1", Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: schema}}}
	return crd
}

func TestFind(t *testing.T) {
	tests := map[string]struct {
		before, after string
		want          []string
	}{
		"nothing":               {"{type: object, properties: {a: {type: string}}}", "{type: object, properties: {a: {type: string, description: new}}}", nil},
		"a new field":           {"{type: object}", "{type: object, properties: {a: {type: string}}}", nil},
		"a removed field":       {"{type: object, properties: {a: {type: object, properties: {b: {type: string}}}}}", "{type: object}", []string{".spec.a: the field is removed: its values are pruned"}},
		"removed and preserved": {"{type: object, properties: {a: {type: string}}}", "{type: object, x-kubernetes-preserve-unknown-fields: true}", nil},
		"type":                  {"{type: object, properties: {a: {type: string}}}", "{type: object, properties: {a: {type: integer}}}", []string{`.spec.a: type: type changed: "string" -> "integer"`}},
		"enum":                  {"{type: object, properties: {a: {type: string, enum: [x, w]}}}", "{type: object, properties: {a: {type: string, enum: [x, z]}}}", []string{`.spec.a: enum: allowed enum values removed: ["w"]`}},
		"enum with more":        {"{type: object, properties: {a: {type: string, enum: [x]}}}", "{type: object, properties: {a: {type: string, enum: [x, z]}}}", nil},
		"required":              {"{type: object, properties: {a: {type: string}}}", "{type: object, required: [a], properties: {a: {type: string}}}", []string{`.spec: required: new required fields: [a]`}},
		"pattern":               {"{type: object, properties: {a: {type: string}}}", "{type: object, properties: {a: {type: string, pattern: '^x$'}}}", []string{`.spec.a: pattern: changed: "" -> "^x$"`}},
		"pattern dropped":       {"{type: object, properties: {a: {type: string, pattern: '^x$'}}}", "{type: object, properties: {a: {type: string}}}", nil},
		"format":                {"{type: object, properties: {a: {type: string}}}", "{type: object, properties: {a: {type: string, format: date}}}", []string{`.spec.a: format: changed: "" -> "date"`}},
		"nullable":              {"{type: object, properties: {a: {type: string, nullable: true}}}", "{type: object, properties: {a: {type: string}}}", []string{".spec.a: nullable: null is no longer accepted"}},
		"limits": {"{type: object, properties: {a: {type: array, items: {type: integer, maximum: 9, minimum: 1}}, b: {type: string, maxLength: 9}}}",
			"{type: object, properties: {a: {type: array, maxItems: 3, items: {type: integer, maximum: 8, minimum: 0}}, b: {type: string, maxLength: 10, minLength: 1}}}",
			[]string{".spec.a: maxItems: maximum constraint added when there was none previously: 3", ".spec.a[*]: maximum: maximum decreased: 9 -> 8", ".spec.b: minLength: minimum constraint added when there was none previously: 1"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, restriction := range restrict.Find(definition(t, tt.before), definition(t, tt.after)) {
				expect.Equal(t, "version", "v1", restriction.Version)
				got = append(got, restriction.String())
			}
			expect.Equal(t, "restrictions", tt.want, got)
		})
	}
}

// TestFindWithoutVersion: removing a version is another matter.
func TestFindWithoutVersion(t *testing.T) {
	before, after := definition(t, "{type: object}"), definition(t, "{type: object}")
	after.Spec.Versions = after.Spec.Versions[:1]
	if got := restrict.Find(before, after); len(got) > 0 {
		t.Errorf("got %v", got)
	}
}
