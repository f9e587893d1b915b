// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/workload"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestRedundancy: pods are reported if all are on one node of several, and the youngest is evicted
// only if that can help and does no harm.
func TestRedundancy(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		change  func(*workload.Redundancy)
		message string
		evicts  bool
	}{
		"another node takes one":            {func(*workload.Redundancy) {}, "the operator evicts one, so that", true},
		"pods are on two nodes":             {func(r *workload.Redundancy) { r.Pods[2].Node = "two" }, "", false},
		"there is one pod":                  {func(r *workload.Redundancy) { r.Pods = r.Pods[:1] }, "", false},
		"there are no pods":                 {func(r *workload.Redundancy) { r.Pods = nil }, "", false},
		"there is one node":                 {func(r *workload.Redundancy) { r.Others = observed.OtherNodes{} }, "", false},
		"no other node takes them":          {func(r *workload.Redundancy) { r.Others.Usable = false }, "no other node takes them", false},
		"a pod is not ready":                {func(r *workload.Redundancy) { r.Pods[0].Ready = false }, "once all are ready", false},
		"a pod is missing":                  {func(r *workload.Redundancy) { r.Workload.Spec.Replicas = new(int32(4)) }, "once all are ready", false},
		"a pod is ending":                   {func(r *workload.Redundancy) { r.Ending = 1 }, "once all are ready", false},
		"the budget forbids it":             {func(r *workload.Redundancy) { r.Evictable = 0 }, "once PodDisruptionBudget conversion-system/converter-fleet-blue allows that", false},
		"it has just been noticed":          {func(r *workload.Redundancy) { r.Before = nil }, "after a while", false},
		"a pod is young":                    {func(r *workload.Redundancy) { r.Pods[1].Created = now.Add(-4 * time.Minute) }, "after a while", false},
		"an earlier eviction did not help":  {func(r *workload.Redundancy) { r.Before = since(now.Add(-3 * time.Hour)) }, "after a while", false},
		"that was long ago":                 {func(r *workload.Redundancy) { r.Before = since(now.Add(-100 * time.Minute)) }, "the operator evicts one, so that", true},
		"a pod on another node starts late": {func(r *workload.Redundancy) { r.Pods[0] = observed.Pod{Node: "two"} }, "once all are ready", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := workload.Redundancy{Evictable: 1, Others: observed.OtherNodes{Exist: true, Usable: true}, Before: since(now.Add(-6 * time.Minute)), Now: now,
				Workload: workload.Workload{Settings: observed.Settings{Namespace: "conversion-system"}, Name: "converter-fleet-blue",
					Spec: v1alpha1.ConverterPods{Replicas: new(int32(3))}}}
			for _, name := range []string{"a", "b", "c"} {
				r.Pods = append(r.Pods, observed.Pod{Name: name, UID: types.UID(name), Node: "one", Ready: true, Created: now.Add(-time.Hour)})
			}
			r.Pods[1].Created = now.Add(-50 * time.Minute)
			c.change(&r)
			decided := r.Decide()
			if c.message == "" && decided.Reason != "" || !strings.Contains(decided.Message, c.message) {
				t.Errorf("%s says %q, want %q", decided.Reason, decided.Message, c.message)
			}
			expect.Equal(t, "it looks again", len(r.Pods) > 1 && workload.OnlyNode(r.Pods) != "", decided.RecheckAfter > 0)
			if evicts := len(decided.Steps) > 0; evicts != c.evicts {
				t.Errorf("the steps are %v", decided.Steps)
			} else if evicts && decided.Steps[0].(step.EvictPod).UID != "b" { //nolint:forcetypeassert // there is no other step
				t.Errorf("it evicts %v, want the youngest pod", decided.Steps)
			}
		})
	}
}

// since are conditions by which pods are on one node since then.
func since(then time.Time) []metav1.Condition {
	return []metav1.Condition{{Type: v1alpha1.NotRedundantCondition, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(then)}}
}
