// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
)

// readyFleet is a fleet with one pod, as it should be.
func readyFleet() *v1alpha1.ConverterFleet {
	is := &v1alpha1.ConverterFleet{}
	is.Status = v1alpha1.ConverterFleetStatus{Replicas: 1, ReadyReplicas: 1, Conditions: []metav1.Condition{
		{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionTrue},
		{Type: v1alpha1.CertificatesReadyCondition, Status: metav1.ConditionTrue},
		{Type: v1alpha1.WebhookAvailableCondition, Status: metav1.ConditionTrue},
	}}
	return is
}

const (
	rulesetStored = "the ruleset that a definition names is stored, and every ready pod has it"
	fleetIsReady  = "the fleet is ready, as large as it should be, and changes nothing"
)

var fleetViolations = []violation{
	{"the definition converts where the policy wants it", "through the Service converter-fleet-green", func(now, _ *observation) {
		now.Service = "converter-fleet-green"
		now.Rulesets["converter-fleet-green"] = now.Rulesets["converter-fleet-blue"]
		suspend(now)
	}},
	{rulesetStored, "where [] are stored", func(now, _ *observation) { now.Rulesets = nil }},
	{rulesetStored, "where [other] are stored", func(now, _ *observation) { now.Rulesets["converter-fleet-blue"] = []string{"other"} }},
	{rulesetStored, "pod pod has []", func(now, _ *observation) { now.Pods[0].Rulesets = nil }},
	{"rulesets are stored only where the definition converts", "converter-fleet-green has the rulesets [old]", func(now, _ *observation) {
		now.Rulesets["converter-fleet-green"] = []string{"old"}
	}},
	{"rulesets are stored only where the definition converts", "converter-fleet-blue has the rulesets [hash]", func(now, _ *observation) {
		*now = observation{Subject: subject{Name: "a"}, Rulesets: now.Rulesets}
	}},
	{fleetIsReady, "there is no fleet blue", func(now, _ *observation) { now.Fleet = nil }},
	{fleetIsReady, "not of the fleet's generation", func(now, _ *observation) { now.Fleet.Generation++ }},
	{fleetIsReady, "expected 2", func(now, _ *observation) { now.Size = 2 }},
	{fleetIsReady, "and 0 as ready", func(now, _ *observation) { now.Fleet.Status.ReadyReplicas = 0 }},
	{fleetIsReady, "WebhookAvailable of the fleet", func(now, _ *observation) { now.Fleet.Status.Conditions[2].Status = metav1.ConditionFalse }},
	{fleetIsReady, "CertificatesReady of the fleet", func(now, _ *observation) { now.Fleet.Status.Conditions[1].Status = metav1.ConditionFalse }},
	{fleetIsReady, "rotates: AddingCA", func(now, _ *observation) {
		now.Fleet.Status.Rotation = &v1alpha1.RotationStatus{State: v1alpha1.RotationAddingCA}
	}},
	{fleetIsReady, "is being deleted", func(now, _ *observation) {
		now.Fleet.Status.Conditions = append(now.Fleet.Status.Conditions, metav1.Condition{Type: v1alpha1.DeletionBlockedCondition})
	}},
}

// TestRotationWaits: a fleet with a suspended or abandoned policy may wait.
func TestRotationWaits(t *testing.T) {
	now := healthy()
	now.Follow = false
	now.Fleet.Status.Rotation = &v1alpha1.RotationStatus{State: v1alpha1.RotationAddingCA}
	now.Fleet.Status.Conditions[1].Status = metav1.ConditionFalse
	if wrong := fleetNotReady(now, now); len(wrong) > 0 {
		t.Errorf("violated: %q", wrong)
	}
}

// TestOwnPods: a policy with pods of its own needs no fleet.
func TestOwnPods(t *testing.T) {
	now := healthy()
	now.Subject.Fleet, now.Fleet = "", nil
	now.Service = service(now.Subject)
	now.Rulesets = map[string][]string{now.Service: {"hash"}}
	for _, always := range []bool{true, false} {
		if wrong := check(invariants, always, map[string]observation{"a": now}, map[string]observation{"a": now}); len(wrong) > 0 {
			t.Errorf("violated: %q", wrong)
		}
	}
}

// TestNamedBy: the Service and the ruleset in a CRD, if they are of the operator.
func TestNamedBy(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = crdOf("a")
	at := func(service string) [2]string {
		path := "/convert/hash"
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig: &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Name: service, Path: &path}}}}
		name, hash := namedBy(crd)
		return [2]string{name, hash}
	}
	for service, want := range map[string][2]string{
		"converter-fleet-blue":    {"converter-fleet-blue", "hash"},
		names.Child(crd.Name):     {names.Child(crd.Name), "hash"},
		names.Child(crdOf("b")):   {},
		"converter-fleet-unknown": {},
	} {
		if got := at(service); got != want {
			t.Errorf("%s is read as %q, want %q", service, got, want)
		}
	}
}

// TestFailures: only failures during the step count, and only of the CRDs of the run.
func TestFailures(t *testing.T) {
	const metrics = `# TYPE apiserver_crd_conversion_webhook_duration_seconds histogram
apiserver_crd_conversion_webhook_duration_seconds_count{crd_name="crontabs.a.soak.example.com",from_version="v1",succeeded="false",to_version="v2"} 2
apiserver_crd_conversion_webhook_duration_seconds_count{crd_name="crontabs.a.soak.example.com",from_version="v2",succeeded="false",to_version="v1"} 3
apiserver_crd_conversion_webhook_duration_seconds_count{crd_name="crontabs.b.soak.example.com",from_version="v1",succeeded="true",to_version="v2"} 7
apiserver_crd_conversion_webhook_duration_seconds_count{crd_name="others.example.com",from_version="v1",succeeded="false",to_version="v2"} 9
`
	got := failedIn(metrics)
	if diff := cmp.Diff(map[string]int{"crontabs.a.soak.example.com": 5}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := failures(got, got); err != nil {
		t.Error(err)
	}
	err := failures(map[string]int{"x": 1}, map[string]int{"x": 1, "y": 2})
	want := errors.New("2 conversions of y failed, and none should: pods that convert were there all the time")
	if err == nil || err.Error() != want.Error() {
		t.Errorf("got %v, want %v", err, want)
	}
}
