//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"strings"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestIdle: policies in a stable state, including failures, cause no writes and no events: not while the manager
// runs, not when another one starts, and not for an hour by its clock. The test is not parallel, because it
// restarts the manager and changes its clock.
func TestIdle(t *testing.T) {
	policies := inManyStates(t)
	t.Cleanup(func() {
		ahead.Store(0)
		restart(t)
	})
	waitFor(t, "crontabs.pending.idle.example.com", v1alpha1.WebhookAvailableCondition, metav1.ConditionFalse, v1alpha1.ReasonRollingOut,
		[]string{"didn't match Pod's node affinity/selector"})
	for _, policy := range policies {
		checkIdle(t, policy)
	}
	noted, status := map[string]int{}, map[string]v1alpha1.ConversionPolicyStatus{}
	for _, policy := range policies {
		noted[policy], status[policy] = noticed(t, policy), getPolicy(t, policy).Status
	}
	before := sent.count()
	looked := func() {
		for _, policy := range policies {
			look(t, policy)
		}
	}
	looked()
	restart(t)
	for range 12 {
		looked()
		ahead.Add(int64(5 * time.Minute))
	}
	looked()
	for _, policy := range policies {
		_, writes := sent.since(before, policy)
		expect.Equal(t, "writes about "+policy, "", strings.Join(writes, "\n"))
		expect.Equal(t, "events of "+policy, noted[policy], noticed(t, policy))
		expect.Equal(t, "status of "+policy, status[policy], getPolicy(t, policy).Status)
	}
	// A write is noticed.
	patch(t, getPolicy(t, policies[0]), `{"metadata":{"finalizers":null}}`)
	expect.Eventually(t, "a write is noticed", func() (bool, string) {
		_, writes := sent.since(before, policies[0])
		return len(writes) > 0, "none"
	})
}

// noticed counts the events of a policy.
func noticed(t *testing.T, policy string) int {
	t.Helper()
	all := 0
	for _, event := range eventsOf(t, aboutPolicy, policy) {
		if all++; event.Series != nil {
			all += int(event.Series.Count)
		}
	}
	return all
}

// inManyStates makes policies of many states, and waits for these.
func inManyStates(t *testing.T) (policies []string) {
	t.Helper()
	none := func(policy *v1alpha1.ConversionPolicy) {
		policy.Spec.Converter, policy.Spec.Workload = v1alpha1.Converter{Type: v1alpha1.ConverterNone}, nil
	}
	one, both := []string{"v1beta1"}, []string{"v1", "v1beta1"}
	for _, of := range []struct {
		name     string
		versions []string
		change   func(*v1alpha1.ConversionPolicy)
		reason   string
	}{
		{"ready", one, shared, v1alpha1.ReasonWaitingForVersion},
		{"broken", both, func(policy *v1alpha1.ConversionPolicy) {
			policy.Spec.Converter.Declarative.Spokes[0].Rules = []v1alpha1.Rule{{Move: &v1alpha1.MoveRule{From: ".hostPort", To: ".replicas"}}}
		}, v1alpha1.ReasonInvalidSpec},
		{"mistyped", both, func(policy *v1alpha1.ConversionPolicy) {
			policy.Spec.Converter.Declarative.Spokes[0].Rules = []v1alpha1.Rule{{CEL: &v1alpha1.CELRule{
				From: map[string]v1alpha1.Path{"h": ".hostPort"}, To: map[string]v1alpha1.Path{"host": ".host"},
				Forward:  map[string]v1alpha1.CELExpression{"host": "size(self.h)"},
				Backward: map[string]v1alpha1.CELExpression{"h": "self.host"},
			}}}
		}, v1alpha1.ReasonInvalidSpec},
		{"absent", nil, nil, v1alpha1.ReasonNotFound},
		{"pending", one, func(policy *v1alpha1.ConversionPolicy) {
			policy.Spec.Workload.Dedicated.NodeSelector = map[string]string{"there": "is-none"}
		}, v1alpha1.ReasonRollingOut},
		{"equal", one, none, v1alpha1.ReasonSucceeded},
		{"differs", both, none, v1alpha1.ReasonInvalidSpec},
		{"paused", both, func(policy *v1alpha1.ConversionPolicy) { policy.Spec.Paused = true }, v1alpha1.ReasonPaused},
		{"elsewhere", both, func(policy *v1alpha1.ConversionPolicy) {
			none(policy)
			policy.Spec.Converter = v1alpha1.Converter{Type: v1alpha1.ConverterService, Service: &v1alpha1.ServiceConverter{Namespace: "nowhere", Name: "converter"}}
			policy.Spec.Certificates = v1alpha1.Certificates{Type: v1alpha1.CertificatesSecret, Secret: &v1alpha1.SecretCertificates{Name: "nothing"}}
		}, v1alpha1.ReasonNotFound},
	} {
		group := of.name + ".idle.example.com"
		if of.versions != nil {
			define(t, group, of.versions...)
		}
		createPolicy(t, group, of.change)
		expect.Eventually(t, group+" is "+of.reason, func() (bool, string) {
			conditions := getPolicy(t, "crontabs."+group).Status.Conditions
			ready := apimeta.FindStatusCondition(conditions, v1alpha1.ReadyCondition)
			return ready != nil && ready.Reason == of.reason, summaryOf(conditions)
		})
		policies = append(policies, "crontabs."+group)
	}
	return policies
}
