//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compatibility

import (
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/verify"
)

const (
	written = `
apiVersion: conversion-operator.io/v1alpha1
kind: ConversionPolicy
metadata: {name: crontabs.example.com}
spec:
  converter: {declarative: {hub: v1, spokes: [{version: v1beta1, rules: [{move: {from: .a, to: .b, later: true}}]}]}}
`
	converted = `
metadata: {name: crontabs.example.com}
spec:
  group: example.com
  names: {plural: crontabs, kind: CronTab}
  scope: Namespaced
  versions:
  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {a: {type: string}}}}}
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {b: {type: string}}}}}
`
)

// TestDowngrade: a later version adds a field to a rule, with an API revision. Its API server refuses
// the field without the revision. After a downgrade, the API server has removed the field but not the
// revision, so that the rule without the field is not used, and the status can still be written.
func TestDowngrade(t *testing.T) {
	cluster := start(t)
	current := filepath.Join("..", "..", "..", "config", "crd", "bases")
	cluster.install(t, current, addLaterField)

	policy := parse(t, written)
	refused(t, cluster.Create(t.Context(), policy.DeepCopy()), "move.later needs apiRevision 2")
	expect.NoError(t, unstructured.SetNestedField(policy.Object, int64(2), "spec", "apiRevision"))
	expect.NoError(t, cluster.Create(t.Context(), policy))

	cluster.install(t, current)
	kept := &v1alpha1.ConversionPolicy{}
	expect.NoError(t, cluster.Get(t.Context(), client.ObjectKeyFromObject(policy), kept))
	expect.NoError(t, cluster.Get(t.Context(), client.ObjectKeyFromObject(policy), policy))
	if text, _ := policy.MarshalJSON(); strings.Contains(string(text), `"later":`) {
		t.Fatalf("the API server kept the field: %s", text)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	expect.NoError(t, yaml.UnmarshalStrict([]byte(converted), crd))
	if _, errs := verify.Compile(kept, crd); len(errs) != 1 || !strings.Contains(errs[0].Message, "spec.apiRevision is 2") {
		t.Errorf("the rules without the field have the errors %v, want one about spec.apiRevision", errs)
	}
	kept.Status.ObservedGeneration = kept.Generation
	expect.NoError(t, cluster.Status().Update(t.Context(), kept))

	kept.Spec.APIRevision = 0
	if _, errs := verify.Compile(kept, crd); len(errs) > 0 {
		t.Errorf("without the revision, nothing shows that a field is missing, but there are %v", errs)
	}
	another := parse(t, strings.NewReplacer(", later: true", "", "crontabs", "others").Replace(written))
	expect.NoError(t, unstructured.SetNestedField(another.Object, int64(2), "spec", "apiRevision"))
	refused(t, cluster.Create(t.Context(), another), "apiRevision must be 1 or less")
}

// addLaterField makes a CustomResourceDefinition that of a later version, as decision 0038 describes.
func addLaterField(crd *apiextensionsv1.CustomResourceDefinition) {
	if crd.Spec.Names.Kind != "ConversionPolicy" {
		return
	}
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	move := spec.Properties["converter"].Properties["declarative"].Properties["spokes"].Items.Schema.
		Properties["rules"].Items.Schema.Properties["move"]
	move.Properties["later"] = apiextensionsv1.JSONSchemaProps{Type: "boolean"}
	rule := &spec.Properties["apiRevision"].XValidations[0]
	rule.Rule = strings.Replace(rule.Rule, "self <= 1", "self <= 2", 1)
	spec.XValidations = append(spec.XValidations, apiextensionsv1.ValidationRule{
		Rule: "has(self.apiRevision) && self.apiRevision >= 2 || !has(self.converter.declarative) || " +
			"self.converter.declarative.spokes.all(s, !has(s.rules) || s.rules.all(r, !has(r.move) || !has(r.move.later)))",
		Message: "move.later needs apiRevision 2",
	})
	crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = spec
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	expect.NoError(t, yaml.Unmarshal([]byte(text), &object.Object))
	return object
}

func refused(t *testing.T, err error, why string) {
	t.Helper()
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), why) {
		t.Errorf("got %v, want a refusal with %q", err, why)
	}
}
