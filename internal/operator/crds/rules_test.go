// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestCompileRulesOfCrossplane has rules for the fields of an XRD and for those that Crossplane adds, in a
// kind of scope LegacyCluster and in another one.
func TestCompileRulesOfCrossplane(t *testing.T) {
	const legacy = "compositionRef: {type: object, properties: {name: {type: string}}}, compositionUpdatePolicy: {type: string}"
	const modern = "crossplane: {type: object, properties: {compositionUpdatePolicy: {type: string}}}, compositionUpdatePolicy: {type: string}"
	table := func(path string) string {
		return "values: {from: " + path + ", to: " + path + ", table: [{from: a, to: b}]}"
	}
	for name, test := range map[string]struct {
		fields, rule string
		unmanaged    bool
		// path is that of the error in the rule, and field the one that Crossplane writes.
		path, field string
	}{
		"a field of the XRD":                    {fields: legacy, rule: "move: {from: .spec.old, to: .spec.engine}"},
		"a field that Crossplane replaces":      {fields: legacy, rule: "move: {from: .spec.old, to: .spec.compositionUpdatePolicy}", path: ".move.to", field: ".spec.compositionUpdatePolicy"},
		"a rule that could be followed":         {fields: legacy, rule: table(".spec.compositionUpdatePolicy"), field: ".spec.compositionUpdatePolicy"},
		"one inside such a field":               {fields: legacy, rule: table(".spec.compositionRef.name"), field: ".spec.compositionRef"},
		"the same name in another scope":        {fields: modern, rule: table(".spec.compositionUpdatePolicy")},
		"the object of Crossplane there":        {fields: modern, rule: table(".spec.crossplane.compositionUpdatePolicy"), field: ".spec.crossplane"},
		"a kind that Crossplane does not write": {fields: legacy, rule: table(".spec.compositionUpdatePolicy"), unmanaged: true},
	} {
		t.Run(name, func(t *testing.T) {
			crd, rule := &apiextensionsv1.CustomResourceDefinition{}, v1alpha1.Rule{}
			expect.NoError(t, yaml.UnmarshalStrict([]byte("spec: {group: example.com, names: {plural: widgets, kind: Widget}, versions: ["+
				"{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {engine: {type: string}, "+test.fields+"}}}}}}, "+
				"{name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {old: {type: string}, "+test.fields+"}}}}}}]}"), crd))
			expect.NoError(t, yaml.UnmarshalStrict([]byte(test.rule), &rule))
			crd.Name = "widgets.example.com"
			if !test.unmanaged {
				crd.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apiextensions.crossplane.io/v2", Kind: "CompositeResourceDefinition", Name: crd.Name, Controller: new(true)}}
			}
			claims := ClaimsWarning(crd)
			expect.Equal(t, "there may be claims", !test.unmanaged && test.fields == legacy, strings.Contains(claims, "if compositeresourcedefinitions.apiextensions.crossplane.io/widgets.example.com has claimNames"))
			result := CompileRules(crd, &v1alpha1.DeclarativeConverter{Hub: "v1", Spokes: []v1alpha1.Spoke{{Version: "v1beta1", Rules: []v1alpha1.Rule{rule}}}})
			expect.Equal(t, "there is a ruleset", test.field == "", result.Ruleset != nil)
			if test.field == "" {
				expect.Equal(t, "errors", 0, len(result.Errors))
				return
			}
			expect.Equal(t, "number of errors", 1, len(result.Errors))
			expect.Equal(t, "path", "spec.converter.declarative.spokes[0].rules[0]"+test.path, result.Errors[0].Field)
			expect.Contains(t, "message", result.Errors[0].Detail, "Crossplane writes "+test.field+", which is copied: ")
		})
	}
}
