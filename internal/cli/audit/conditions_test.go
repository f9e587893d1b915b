// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

func TestConditions(t *testing.T) {
	const one = "versions: {v1 served storage: {a: string}}\n"
	run(t, map[string]check{
		"served": {crd: one + "status: {conditions: [{type: NamesAccepted, status: 'True'}, {type: Established, status: 'True'}]}"},
		"names are taken": {crd: one + "status: {conditions: [{type: NamesAccepted, status: 'False', reason: KindConflict, message: taken}, {type: Established, status: 'False', reason: NotAccepted}]}", want: []string{
			"Error Certain NamesNotAccepted -: NamesAccepted is False (KindConflict): taken"}},
		"not served": {crd: one + "status: {conditions: [{type: NamesAccepted, status: 'True'}, {type: Established, status: 'False', reason: InvalidCABundle, message: no bundle}]}", want: []string{
			"Error Certain NotEstablished -: Established is False (InvalidCABundle): no bundle"}},
		"no structure": {crd: one + "status: {conditions: [{type: NonStructuralSchema, status: 'True', reason: Violations, message: type is required}]}", want: []string{
			"Warning Certain NonStructuralSchema -: NonStructuralSchema is True: type is required"}},
		"just deleted": {crd: one + "metadata: {deletionTimestamp: 2025-12-31T23:59:00Z}"},
		"stuck": {crd: one + "metadata: {deletionTimestamp: 2025-12-31T23:00:00Z}\nstatus: {conditions: [{type: Terminating, status: 'True', message: 1 object left}]}", want: []string{
			"Error Certain TerminatingStuck -: it has been terminating since 2025-12-31T23:00:00Z: 1 object left"}},
		"stuck without a word": {crd: one + "metadata: {deletionTimestamp: 2025-12-31T23:00:00Z}", want: []string{
			"Error Certain TerminatingStuck -: it has been terminating since 2025-12-31T23:00:00Z: the API server gives no reason"}},
	})
}

func TestDeprecated(t *testing.T) {
	warning := "use v2"
	run(t, map[string]check{
		"not served": {crd: "versions: {v1 deprecated: {}, v2 served storage: {}}"},
		"served": {crd: "versions: {v1 served deprecated: {}, v2 served storage: {}}", observe: func(o *Observed) { o.CRD.Spec.Versions[0].DeprecationWarning = &warning }, want: []string{
			"Note Certain DeprecatedVersionServed v1: v1 is deprecated and still served: use v2"}},
		"stored": {crd: "versions: {v1 served storage deprecated: {}, v2 served: {}}", want: []string{
			"Warning Certain DeprecatedVersionServed v1: v1 is deprecated and is the storage version: the API server stores all objects in it"}},
	})
}

func TestPolicies(t *testing.T) {
	const one = "versions: {v1 served storage: {a: string}}\n"
	ready := func(conditions ...metav1.Condition) func(*Observed) {
		return func(o *Observed) {
			o.Policy = &v1alpha1.ConversionPolicy{}
			o.Policy.Status.Conditions = conditions
		}
	}
	run(t, map[string]check{
		"ready": {crd: one, observe: ready(metav1.Condition{Type: "Ready", Status: "True"})},
		"not ready": {crd: one, observe: ready(metav1.Condition{Type: "Ready", Status: "False", Reason: "PlanInvalid", Message: "fix it"}), want: []string{
			"Warning Certain PolicyNotReady -: its ConversionPolicy is not Ready (PlanInvalid): fix it"}},
		"not seen": {crd: one, observe: ready(), want: []string{
			"Warning Certain PolicyNotReady -: its ConversionPolicy has no condition Ready yet"}},
		"without a definition": {crd: one, observe: func(o *Observed) {
			o.CRD, o.Policy = nil, &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"}}
		}, want: []string{
			"Warning Certain PolicyWithoutDefinition -: there is a ConversionPolicy of this name, but no CustomResourceDefinition"}},
	})
}
