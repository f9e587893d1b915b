// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func statusOf(ready metav1.ConditionStatus, reason, message string) v1alpha1.ConversionPolicyStatus {
	return v1alpha1.ConversionPolicyStatus{Conditions: []metav1.Condition{
		{Type: v1alpha1.ReadyCondition, Status: ready, Reason: reason, Message: message}}}
}

// TestPace: a status that shows only progress is written once in progressPause, and all others at once.
func TestPace(t *testing.T) {
	storing := statusOf(metav1.ConditionFalse, v1alpha1.ReasonRollingOut, "storing")
	sampling := statusOf(metav1.ConditionFalse, v1alpha1.ReasonProbing, "sampling")
	active := statusOf(metav1.ConditionFalse, v1alpha1.ReasonConfiguring, "configuring")
	active.ActiveRevisions = []v1alpha1.ActiveRevision{{Revision: "abc"}}
	cases := map[string]struct {
		before, decided v1alpha1.ConversionPolicyStatus
		after           time.Duration
		waits           bool
	}{
		"the first":           {v1alpha1.ConversionPolicyStatus{}, storing, 0, false},
		"progress":            {storing, sampling, time.Second, true},
		"progress, later":     {storing, sampling, progressPause, false},
		"ready":               {sampling, statusOf(metav1.ConditionTrue, v1alpha1.ReasonSucceeded, ""), 0, false},
		"not ready any more":  {statusOf(metav1.ConditionTrue, v1alpha1.ReasonSucceeded, ""), storing, 0, false},
		"a problem":           {sampling, statusOf(metav1.ConditionFalse, v1alpha1.ReasonCanaryFailed, ""), 0, false},
		"a problem is over":   {statusOf(metav1.ConditionFalse, v1alpha1.ReasonCanaryFailed, ""), sampling, 0, false},
		"it may be requested": {sampling, active, 0, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var p progress
			now := time.Now()
			p.pace("a", v1alpha1.ConversionPolicyStatus{}, plan.Plan{Status: c.before}, now)
			decided := p.pace("a", c.before, plan.Plan{Status: c.decided, RecheckAfter: time.Hour}, now.Add(c.after))
			want, recheck := c.decided, time.Hour
			if c.waits {
				want, recheck = c.before, progressPause-c.after
			}
			expect.Equal(t, "decided", plan.Plan{Status: want, RecheckAfter: recheck}, decided)
		})
	}
}
