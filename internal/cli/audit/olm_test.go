// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func TestRefusedByOLM(t *testing.T) {
	const installed = "metadata: {labels: {olm.operatorframework.io/owner-name: widgets}}\n"
	const one = installed + "versions: {v1 served storage: {a: string}}\n"
	to := func(text string) func(*Observed) {
		return func(o *Observed) { o.Next = definition(t, text) }
	}
	// changed is a manifest in which field .a of v1 is changed.
	changed := func(before, after func(*apiextensionsv1.JSONSchemaProps)) func(*Observed) {
		return func(o *Observed) {
			o.Next = o.CRD.DeepCopy()
			change(o.CRD, before)
			change(o.Next, after)
		}
	}
	same := func(*apiextensionsv1.JSONSchemaProps) {}
	webhook := func(o *Observed) {
		to("spec: {conversion: {strategy: Webhook}}\nversions: {v1 served storage: {a: string}, v2 served: {a: string, b: string}}")(o)
	}
	run(t, map[string]check{
		"no change":     {crd: one, observe: changed(same, same)},
		"a new version": {crd: one, observe: to("versions: {v1 served storage: {a: string}, v2 served: {a: string}}")},
		"a removed field": {crd: one, observe: to("versions: {v1 served storage: {}}"), want: []string{
			"Warning Certain UpgradeRestrictsVersion v1: the new manifest accepts fewer values at v1: .a: the field is removed: its values are pruned",
			"Warning Certain OLMRefuses v1: OLM 1 refuses changes of an existing version: .a: the field is removed"}},
		"a definition that OLM does not install": {crd: "versions: {v1 served storage: {a: string}}\n", observe: to("spec: {scope: Cluster}\nversions: {v1 served storage: {a: string}}"), want: []string{
			`Note Possible OLMRefuses -: OLM 1 refuses a change of spec.scope: "" -> "Cluster"`}},
		"a definition in a bundle": {crd: "versions: {v1 served storage: {a: string}}\n", observe: func(o *Observed) {
			to("spec: {scope: Cluster}\nversions: {v1 served storage: {a: string}}")(o)
			o.Bundle = &Bundle{Converted: []string{"gadgets.example.com"}}
		}, want: []string{`Warning Certain OLMRefuses -: OLM 1 refuses a change of spec.scope: "" -> "Cluster"`}},
		"a new description": {crd: one, observe: changed(same, func(a *apiextensionsv1.JSONSchemaProps) { a.Description = "new" })},
		"a new default": {crd: one, observe: changed(same, func(a *apiextensionsv1.JSONSchemaProps) { a.Default = &apiextensionsv1.JSON{Raw: []byte(`"x"`)} }), want: []string{
			`Warning Certain OLMRefuses v1: OLM 1 refuses changes of an existing version: .a: default: default added when there was none previously: "\"x\""`}},
		"a new value of an enum": {crd: one, observe: changed(enum("x"), enum("x", "y"))},
		"a removed value of an enum": {crd: one, observe: changed(enum("x", "y"), enum("x")), want: []string{
			"Warning Certain UpgradeRestrictsVersion v1: the new manifest accepts fewer values at v1: .a: enum: allowed enum values removed: [\"y\"]",
			"Warning Certain OLMRefuses v1: OLM 1 refuses changes of an existing version: .a: enum: allowed enum values removed: [\"y\"]"}},
		"a change that no comparator knows": {crd: one, observe: changed(func(a *apiextensionsv1.JSONSchemaProps) { a.Pattern = "x" }, same), want: []string{
			"Warning Certain OLMRefuses v1: OLM 1 refuses changes of an existing version: .a: unhandled: unhandled changes found"}},
		"a new field": {crd: one, observe: to("versions: {v1 served storage: {a: string, b: string}}")},
		"a version that differs": {crd: one, observe: to("spec: {conversion: {strategy: None}}\nversions: {v1 served storage: {a: string}, v2 served: {a: integer}}"), want: []string{
			`Warning Certain OLMRefuses -: OLM 1 refuses differences between served versions without a conversion webhook, v1 -> v2: .a: type: type changed: "string" -> "integer"`}},
		"one that is not served":        {crd: one, observe: to("versions: {v1 served storage: {a: string}, v2: {a: integer}}")},
		"one with a conversion webhook": {crd: one, observe: webhook},
		"one that OLM gives a conversion webhook": {crd: one, observe: func(o *Observed) {
			to("versions: {v1 served storage: {a: string}, v2 served: {a: integer}}")(o)
			o.Bundle = &Bundle{Converted: []string{"widgets.example.com"}}
		}},
		"no schema": {crd: one, observe: func(o *Observed) {
			o.Next = o.CRD.DeepCopy()
			o.Next.Spec.Versions[0].Schema = nil
		}, want: []string{
			"Warning Certain OLMRefuses v1: OLM 1 refuses changes of an existing version: .: the field is removed, .a: the field is removed"}},
	})
}

// change changes the schema of field .a of v1.
func change(crd *apiextensionsv1.CustomResourceDefinition, change func(*apiextensionsv1.JSONSchemaProps)) {
	properties := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties
	a := properties["a"]
	change(&a)
	properties["a"] = a
}

func enum(values ...string) func(*apiextensionsv1.JSONSchemaProps) {
	return func(a *apiextensionsv1.JSONSchemaProps) {
		for _, value := range values {
			a.Enum = append(a.Enum, apiextensionsv1.JSON{Raw: []byte(`"` + value + `"`)})
		}
	}
}
