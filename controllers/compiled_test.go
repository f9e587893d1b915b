// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestRulesAreCompiledOnce for each generation and uid of a policy and of its
// CustomResourceDefinition.
func TestRulesAreCompiledOnce(t *testing.T) {
	var rules compiledRules
	policy := &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com", UID: "p", Generation: 1}}
	policy.Spec.Converter = v1alpha1.Converter{Type: v1alpha1.ConverterDeclarative, Declarative: &v1alpha1.DeclarativeConverter{Hub: "v2"}}
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
	expect.Equal(t, "kept for the same generations", true, rules.result(policy, crd).Ruleset == first.Ruleset)
	for name, change := range map[string]func(){
		"generation of the policy":                      func() { policy.Generation++ },
		"generation of the CustomResourceDefinition":    func() { crd.Generation++ },
		"another policy of the name":                    func() { policy.UID = "q" },
		"another CustomResourceDefinition of the name":  func() { crd.UID = "d" },
		"forgotten, as the policy was gone for a while": func() { rules.forget(policy.Name) },
	} {
		before := rules.result(policy, crd)
		change()
		expect.Equal(t, name+": compiled again", true, rules.result(policy, crd).Ruleset != before.Ruleset)
	}
	policy.Spec.Converter.Declarative = nil
	expect.Equal(t, "a policy without rules has compiled rules", false, rules.result(policy, crd).Ruleset != nil)
}

// TestLeavesAreNotKept: what the manager keeps of the rules has all that decisions need, and no verdict on
// each field.
func TestLeavesAreNotKept(t *testing.T) {
	var rules compiledRules
	policy := &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"}}
	policy.Spec.Converter = v1alpha1.Converter{Type: v1alpha1.ConverterDeclarative, Declarative: &v1alpha1.DeclarativeConverter{Hub: "v2"}}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: policy.Name}}
	crd.Spec.Group, crd.Spec.Names.Kind = "example.com", "Widget"
	for version, field := range map[string]string{"v1": "old", "v2": "new"} {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Served: true, Storage: version == "v2",
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{field: {Type: "string"}}}},
		})
	}
	want := compile.Compile(crd, policy.Spec.Converter.Declarative)
	if len(want.Leaves) == 0 {
		t.Fatal("there are no verdicts on fields")
	}
	want.Leaves = nil
	if kept := rules.result(policy, crd); !reflect.DeepEqual(kept, want) {
		t.Errorf("kept %+v, want %+v", kept, want)
	}
}

// TestRulesetsAreLoadedOnce for each resourceVersion of their ConfigMap. The test damages the text
// without changing the resourceVersion, and expects the same answer.
func TestRulesetsAreLoadedOnce(t *testing.T) {
	rules := &conversion.Ruleset{Format: conversion.RulesetFormat, CRD: "widgets.example.com", Group: "example.com", Kind: "Widget",
		Hub: "v2", Versions: []string{"v1", "v2"}, Spokes: []conversion.Spoke{{Version: "v1"}}}
	text, err := rules.Marshal()
	expect.NoError(t, err)
	hash := conversion.HashOf(text)
	stored := map[string][]byte{conversion.StoredName("widgets", hash): conversion.Store(text)}
	configMap := corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "widgets", UID: "c", ResourceVersion: "1"}, BinaryData: stored}
	var rulesets storedRulesets
	is := func() bool {
		read := rulesets.read("policy", []corev1.ConfigMap{configMap})
		return len(read) == 1 && read[0].Hash == hash && read[0].Readable
	}
	expect.Equal(t, "it can be read", true, is())
	configMap.BinaryData = map[string][]byte{conversion.StoredName("widgets", hash): []byte("damaged")}
	expect.Equal(t, "it is kept, and not loaded again", true, is())
	configMap.ResourceVersion = "2"
	expect.Equal(t, "what was changed is kept, and not loaded again", false, is())
	configMap.BinaryData, configMap.UID = stored, "d"
	expect.Equal(t, "another ConfigMap of the name is loaded", true, is())
	remembered, _ := rulesets.byPolicy.get("policy")
	expect.Equal(t, "are remembered", 1, len(remembered))
	rulesets.forget("policy")
	configMap.DeletionTimestamp = &metav1.Time{}
	*configMap.DeletionTimestamp = metav1.Unix(1, 0)
	expect.Equal(t, "one that is being deleted is readable", false, is())
}
