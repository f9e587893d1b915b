// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

func TestNone(t *testing.T) {
	run(t, map[string]check{
		"equal":              {crd: "versions: {v1 served storage: {a: string}, v2 served: {a: string}}"},
		"nothing is in use":  {crd: "versions: {v1 served storage: {a: string}, v2: {b: string}}"},
		"a webhook converts": {crd: "versions: {v1 served storage: {a: string}, v2 served: {b: string}}\nspec: {conversion: {strategy: Webhook}}"},
		"strategy None":      {crd: "versions: {v1 served storage: {a: string}, v2 served: {a: string}}\nspec: {conversion: {strategy: None}}"},
		"schemas mean nothing": {crd: "versions: {v1 served storage: {a: string}, v2 served: {b: string}}\nspec: {preserveUnknownFields: true}", want: []string{
			"Warning Certain PreservesUnknownFields -: spec.preserveUnknownFields is true: fields that no schema knows are stored, and conversion webhooks are not allowed"}},
		"a field that is not stored": {crd: "versions: {v1 served storage: {a: string}, v2 served: {a: string, b: string}}", want: []string{
			"Error Certain NoneLosesFields v2: nothing converts, and the storage version v1 lacks 1 field of v2: what is written to them is dropped without a word: .b"}},
		"a field that is not shown": {crd: "versions: {v1 served storage: {a: string, b: string}, v2 served: {a: string}}", want: []string{
			"Warning Certain NoneHidesFields v2: nothing converts, and v2 lacks 1 field of the storage version v1: who replaces an object at v2 drops them without a word: .b"}},
		"another type": {crd: "versions: {v1 served storage: {a: string, b: string}, v2 served: {a: integer, c: string}}", want: []string{
			"Error Certain NoneTypesDiffer v2: nothing converts, and in v2 the type of 1 field is another one than in the storage version v1: values written at one are invalid at the other: .a",
			"Error Certain NoneLosesFields v2: nothing converts, and the storage version v1 lacks 1 field of v2: what is written to them is dropped without a word: .c",
			"Warning Certain NoneHidesFields v2: nothing converts, and v2 lacks 1 field of the storage version v1: who replaces an object at v2 drops them without a word: .b"}},
		"stored in one that is not served": {crd: "versions: {v1: {b: string}, v2 served storage: {a: string}}\nstatus: {storedVersions: [v1, v2]}", want: []string{
			"Warning Certain StoredVersionUnserved v1: status.storedVersions lists v1, which is not served: objects may still be stored in it, and removing it from spec.versions is refused",
			"Error Certain NoneLosesFields v1: nothing converts, and the storage version v2 lacks 1 field of v1, in which objects may still be stored: they are dropped when such an object is written: .b"}},
		"without structure": {crd: "versions: {v1 served storage: {a: string}, v2 served: {b: string}}", observe: func(o *Observed) {
			o.CRD.Spec.Versions[1].Schema.OpenAPIV3Schema.Ref = new("#/definitions/x")
		}, want: []string{
			"Warning Certain NonStructuralSchema v2: nothing converts, and the fields of the versions cannot be compared: CustomResourceDefinition.spec.versions[v2].schema: Invalid value: \"v2\": the schema is not structural: OpenAPIV3Schema '$ref' is not supported"}},
		"without structure, as the API server says": {crd: "versions: {v1 served storage: {a: string}, v2 served: {a: ''}}\nstatus: {conditions: [{type: NonStructuralSchema, status: 'True', message: no type}]}", want: []string{
			"Warning Certain NonStructuralSchema -: NonStructuralSchema is True: no type"}},
		"accepted by a policy": {crd: "versions: {v1 served storage: {a: string}, v2 served: {a: string, b: string, bc: string}}", observe: func(o *Observed) {
			o.Policy = &v1alpha1.ConversionPolicy{}
			o.Policy.Spec.Converter.None = &v1alpha1.NoneConverter{AcceptedLosses: []string{".b"}}
			o.Policy.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionTrue}}
		}, want: []string{
			"Error Certain NoneLosesFields v2: nothing converts, and the storage version v1 lacks 1 field of v2: what is written to them is dropped without a word: .bc"}},
		"more than a few": {crd: "versions: {v1 served storage: {}, v2 served: {a: string, b: string, c: string, d: string, e: string, f: string}}", want: []string{
			"Error Certain NoneLosesFields v2: nothing converts, and the storage version v1 lacks 6 fields of v2: what is written to them is dropped without a word: .a, .b, .c, .d, .e and 1 more"}},
		"each against the storage version": {crd: "versions: {v1 served: {a: string}, v2 served storage: {}, v3 served: {b: string}}", want: []string{
			"Error Certain NoneLosesFields v1: nothing converts, and the storage version v2 lacks 1 field of v1: what is written to them is dropped without a word: .a",
			"Error Certain NoneLosesFields v3: nothing converts, and the storage version v2 lacks 1 field of v3: what is written to them is dropped without a word: .b"}},
	})
}

func TestFields(t *testing.T) {
	found := Look(&Observed{CRD: definition(t, "versions: {v1 served storage: {}, v2 served: {a: string, b: string, c: string, d: string, e: string, f: string}}")})
	if diff := cmp.Diff([]string{".a", ".b", ".c", ".d", ".e", ".f"}, found[0].Fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}
