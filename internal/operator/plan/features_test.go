// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// declare sets a field of a version in the manifest; nil removes it.
func (w *world) declare(version, field string, value any) {
	w.t.Helper()
	versions := w.Versions()
	_, index := crds.Version(w.observed.CRD, version)
	versions[index][field] = value
	w.putVersions("kubectl", versions)
}

var withScale = map[string]any{"scale": map[string]any{"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}

// TestPreferredVersionLacks: a policy whose conversion is active says what clients do not find that name no version.
func TestPreferredVersionLacks(t *testing.T) {
	const lacks = "clients that name no version use v1, which lacks the subresource scale of v1beta1: HorizontalPodAutoscalers"
	w := newWorld(t, policyYAML)
	promoted(w)
	w.declare("v1beta1", "subresources", withScale)
	expectCondition(t, w.observed.Policy.Status, v1alpha1.RulesValidCondition, "True", v1alpha1.ReasonValid, "; "+lacks)
	expectCondition(t, w.observed.Policy.Status, v1alpha1.ReadyCondition, "True", v1alpha1.ReasonSucceeded, "; "+lacks)
	w.declare("v1", "subresources", withScale)
	ready := apimeta.FindStatusCondition(w.observed.Policy.Status.Conditions, v1alpha1.ReadyCondition)
	expect.Equal(t, "message with a scale at both", "conversion is active and verified; objects are written at v1", ready.Message)
}

// TestPreferredVersionIsKept: the preferred version stays served while clients that name none would lose its scale.
func TestPreferredVersionIsKept(t *testing.T) {
	w := newWorld(t, policyYAML)
	w.define(bothStoredNew)
	w.completes(1000)
	w.declare("v1", "subresources", withScale)
	w.observed.Policy.Spec.StorageVersion = "v1beta1"
	w.retire("v1", v1alpha1.RetirementUnserve)
	w.observed.Policy.Spec.Retirement[0].After = &metav1.Duration{}
	w.converge()
	w.completes(1000)
	expectCondition(t, w.observed.Policy.Status, v1alpha1.VersionsRetiredCondition, "False", v1alpha1.ReasonBlocked,
		"v1 stays served: once it is not served, clients that name no version use v1beta1, which lacks the subresource scale of v1")
	status := w.observed.Policy.Status.Versions[0]
	expect.Equal(t, "version, safe to unserve, reason", []any{"v1", false, v1alpha1.BlockedFeatures}, []any{status.Name, status.SafeToUnserve, status.BlockedBy[0].Reason})
	w.declare("v1beta1", "subresources", withScale)
	w.settleAPIServers()
	expect.Equal(t, "served versions", []string{"v1beta1"}, crds.ServedVersions(w.observed.CRD))
}

// TestRemovalThatAPIServersRefuse: with three versions, two may have the same selectableFields and different schemas.
func TestRemovalThatAPIServersRefuse(t *testing.T) {
	w := newWorld(t, policyYAML)
	w.retire("v1beta1", v1alpha1.RetirementUnserve)
	w.observed.Policy.Spec.Retirement[0].After = &metav1.Duration{}
	promoted(w)
	w.settleAPIServers()
	versions := w.Versions()
	fields := []any{map[string]any{"jsonPath": ".spec.host"}}
	versions[1]["selectableFields"] = fields
	next := map[string]any{"name": "v2", "served": true, "storage": false, "selectableFields": fields,
		"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{"spec": map[string]any{
			"type": "object", "properties": map[string]any{"host": map[string]any{"type": "string"}}}}}}}
	w.retire("v1beta1", v1alpha1.RetirementRemove)
	w.observed.Policy.Spec.Retirement[0].After = &metav1.Duration{}
	w.putVersions("kubectl", append(versions, next))
	w.completes(1000)
	w.settleAPIServers()
	expectCondition(t, w.observed.Policy.Status, v1alpha1.VersionsRetiredCondition, "False", v1alpha1.ReasonBlocked,
		"v1beta1 stays: without it, all versions have the same selectableFields and different schemas, which API servers refuse: let the lists differ")
	w.declare("v2", "selectableFields", nil)
	w.settleAPIServers()
	if version, _ := crds.Version(w.observed.CRD, "v1beta1"); version != nil {
		t.Errorf("v1beta1 is still there: %v", w.observed.Policy.Status.Conditions)
	}
}
