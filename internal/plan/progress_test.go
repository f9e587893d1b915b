// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan"
)

// TestOnlyProgress: everything that a decision of another manager depends on, and every problem, is more
// than progress.
func TestOnlyProgress(t *testing.T) {
	sampling := func(changes ...func(*v1alpha1.ConversionPolicyStatus)) v1alpha1.ConversionPolicyStatus {
		status := v1alpha1.ConversionPolicyStatus{ObservedGeneration: 1, Conditions: []metav1.Condition{
			{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonSampling}}}
		for _, change := range changes {
			change(&status)
		}
		return status
	}
	cases := map[string]struct {
		after v1alpha1.ConversionPolicyStatus
		want  bool
	}{
		"another step": {sampling(func(s *v1alpha1.ConversionPolicyStatus) { s.Conditions[0].Reason = v1alpha1.ReasonProbing }), true},
		"pods and checks": {sampling(func(s *v1alpha1.ConversionPolicyStatus) {
			s.Webhook, s.Verification = &v1alpha1.WebhookStatus{Ready: 3}, &v1alpha1.VerificationStatus{Subject: "a"}
		}), true},
		"ready":              {sampling(func(s *v1alpha1.ConversionPolicyStatus) { s.Conditions[0].Status = metav1.ConditionTrue }), false},
		"a failure":          {sampling(func(s *v1alpha1.ConversionPolicyStatus) { s.Conditions[0].Reason = v1alpha1.ReasonCanaryFailed }), false},
		"another generation": {sampling(func(s *v1alpha1.ConversionPolicyStatus) { s.ObservedGeneration = 2 }), false},
		"a revision is active": {sampling(func(s *v1alpha1.ConversionPolicyStatus) {
			s.ActiveRevisions = []v1alpha1.ActiveRevision{{Revision: "a"}}
		}), false},
		"drift":  {sampling(func(s *v1alpha1.ConversionPolicyStatus) { s.Drift = &v1alpha1.DriftStatus{} }), false},
		"window": {sampling(func(s *v1alpha1.ConversionPolicyStatus) { s.UnconvertedWindow = &v1alpha1.UnconvertedWindow{} }), false},
		"a problem": {sampling(func(s *v1alpha1.ConversionPolicyStatus) {
			s.Conditions = append(s.Conditions, metav1.Condition{Type: v1alpha1.DeletionBlockedCondition, Status: metav1.ConditionTrue})
		}), false},
	}
	for name, c := range cases {
		if got := plan.OnlyProgress(sampling(), c.after); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if plan.OnlyProgress(v1alpha1.ConversionPolicyStatus{}, sampling()) {
		t.Error("a policy without a status waits for it")
	}
}
