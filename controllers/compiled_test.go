// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// TestRulesAreCompiledOnce for each generation of a policy and of its
// CustomResourceDefinition, and again for others of these names.
func TestRulesAreCompiledOnce(t *testing.T) {
	var rules compiledRules
	policy := &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com", UID: "p", Generation: 1}}
	policy.Spec.Converter.Declarative = &v1alpha1.DeclarativeConverter{Hub: "v2"}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: policy.Name, UID: "c", Generation: 1}}
	crd.Spec.Group, crd.Spec.Names.Kind = "example.com", "Widget"
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{
		Name: "v2", Served: true, Storage: true,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
	}}
	first := rules.result(policy, crd)
	if first.Ruleset == nil {
		t.Fatalf("not compiled: %v", first.Errors)
	}
	crd.ResourceVersion, crd.Status.StoredVersions = "2", []string{"v2"} // another status
	if again := rules.result(policy, crd); again.Ruleset != first.Ruleset {
		t.Error("compiled again for the same generations")
	}
	for name, change := range map[string]func(){
		"generation of the policy":                      func() { policy.Generation++ },
		"generation of the CustomResourceDefinition":    func() { crd.Generation++ },
		"another policy of the name":                    func() { policy.UID = "q" },
		"another CustomResourceDefinition of the name":  func() { crd.UID = "d" },
		"forgotten, as the policy was gone for a while": func() { rules.forget(policy.Name) },
	} {
		before := rules.result(policy, crd)
		if change(); rules.result(policy, crd).Ruleset == before.Ruleset {
			t.Errorf("%s: not compiled again", name)
		}
	}
	policy.Spec.Converter.Declarative = nil
	if result := rules.result(policy, crd); result.Ruleset != nil {
		t.Error("a policy without rules still has compiled rules")
	}
}
