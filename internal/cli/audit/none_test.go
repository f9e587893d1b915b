// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestNone(t *testing.T) {
	run(t, map[string]check{
		"equal":              {crd: "versions: {v1 served storage: {a: string}, v2 served: {a: string}}"},
		"nothing is in use":  {crd: "versions: {v1 served storage: {a: string}, v2: {b: string}}"},
		"a webhook converts": {crd: "versions: {v1 served storage: {a: string}, v2 served: {b: string}}\nspec: {conversion: {strategy: Webhook}}"},
		"strategy None":      {crd: "versions: {v1 served storage: {a: string}, v2 served: {a: string}}\nspec: {conversion: {strategy: None}}"},
		"schemas mean nothing": {crd: "versions: {v1 served storage: {a: string}, v2 served: {b: string}}\nspec: {preserveUnknownFields: true}", want: []string{
			"Warning Certain PreservesUnknownFields -: spec.preserveUnknownFields is true: the API server stores unknown fields, and allows no conversion webhook"}},
		"a field that is not stored": {crd: "versions: {v1 served storage: {a: string}, v2 served: {a: string, b: string}}", want: []string{
			"Error Certain NoneLosesFields v2: there is no conversion, and the storage version v1 lacks 1 field of v2: the API server silently drops values written to them: .b"}},
		"a field that is not shown": {crd: "versions: {v1 served storage: {a: string, b: string}, v2 served: {a: string}}", want: []string{
			"Warning Certain NoneHidesFields v2: there is no conversion, and v2 lacks 1 field of the storage version v1: a client that replaces an object at v2 silently drops them: .b"}},
		"another type": {crd: "versions: {v1 served storage: {a: string, b: string}, v2 served: {a: integer, c: string}}", want: []string{
			"Error Certain NoneTypesDiffer v2: there is no conversion, and in v2 the type of 1 field differs from the storage version v1: values written at one are invalid at the other: .a",
			"Error Certain NoneLosesFields v2: there is no conversion, and the storage version v1 lacks 1 field of v2: the API server silently drops values written to them: .c",
			"Warning Certain NoneHidesFields v2: there is no conversion, and v2 lacks 1 field of the storage version v1: a client that replaces an object at v2 silently drops them: .b"}},
		"stored in one that is not served": {crd: "versions: {v1: {b: string}, v2 served storage: {a: string}}\nstatus: {storedVersions: [v1, v2]}", want: []string{
			"Warning Certain StoredVersionUnserved v1: status.storedVersions lists v1, which is not served: objects may still be stored in it, and the API server refuses to remove it from spec.versions",
			"Error Certain NoneLosesFields v1: there is no conversion, and the storage version v2 lacks 1 field of v1, in which objects may still be stored: a write of such an object drops them: .b"}},
		"without structure": {crd: "versions: {v1 served storage: {a: string}, v2 served: {b: string}}", observe: func(o *Observed) {
			o.CRD.Spec.Versions[1].Schema.OpenAPIV3Schema.Ref = new("#/definitions/x")
		}, want: []string{
			"Warning Certain NonStructuralSchema v2: there is no conversion, and the fields of the versions cannot be compared: CustomResourceDefinition.spec.versions[v2].schema: Invalid value: \"v2\": the schema is not structural: OpenAPIV3Schema '$ref' is not supported"}},
		"without structure, as the API server says": {crd: "versions: {v1 served storage: {a: string}, v2 served: {a: ''}}\nstatus: {conditions: [{type: NonStructuralSchema, status: 'True', message: no type}]}", want: []string{
			"Warning Certain NonStructuralSchema -: NonStructuralSchema is True: no type"}},
		"accepted by a policy": {crd: "versions: {v1 served storage: {a: string}, v2 served: {a: string, b: string, bc: string}}", observe: func(o *Observed) {
			o.Policy = &v1alpha1.ConversionPolicy{}
			o.Policy.Spec.Converter = v1alpha1.Converter{Type: v1alpha1.ConverterNone, None: &v1alpha1.NoneConverter{AcceptedLosses: []string{".b"}}}
			o.Policy.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionTrue}}
		}, want: []string{
			"Error Certain NoneLosesFields v2: there is no conversion, and the storage version v1 lacks 1 field of v2: the API server silently drops values written to them: .bc"}},
		"more than a few": {crd: "versions: {v1 served storage: {}, v2 served: {a: string, b: string, c: string, d: string, e: string, f: string}}", want: []string{
			"Error Certain NoneLosesFields v2: there is no conversion, and the storage version v1 lacks 6 fields of v2: the API server silently drops values written to them: .a, .b, .c, .d, .e and 1 more"}},
		"each against the storage version": {crd: "versions: {v1 served: {a: string}, v2 served storage: {}, v3 served: {b: string}}", want: []string{
			"Error Certain NoneLosesFields v1: there is no conversion, and the storage version v2 lacks 1 field of v1: the API server silently drops values written to them: .a",
			"Error Certain NoneLosesFields v3: there is no conversion, and the storage version v2 lacks 1 field of v3: the API server silently drops values written to them: .b"}},
	})
}

func TestFields(t *testing.T) {
	found := Check(&Observed{CRD: definition(t, "versions: {v1 served storage: {}, v2 served: {a: string, b: string, c: string, d: string, e: string, f: string}}")})
	expect.Equal(t, "fields", []string{".a", ".b", ".c", ".d", ".e", ".f"}, found[0].Fields)
}
