// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan"
	"github.com/conversion-operator/conversion-operator/internal/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
)

// TestPodsOnOneNode: pods of a policy alone are reported, and one of them is evicted. A fleet takes
// care of its own pods.
func TestPodsOnOneNode(t *testing.T) {
	cases := map[string]struct {
		world             func(*testing.T) *world
		change            func(*world)
		reported, evicted bool
	}{
		"rules":              {func(t *testing.T) *world { t.Helper(); return activeBy(t, policyYAML) }, func(*world) {}, true, true},
		"an image":           {func(t *testing.T) *world { t.Helper(); return activeBy(t, imageYAML) }, func(*world) {}, true, true},
		"a suspended policy": {func(t *testing.T) *world { t.Helper(); return activeBy(t, policyYAML) }, func(w *world) { w.observed.Policy.Spec.Suspend = true }, true, false},
		"no other node":      {func(t *testing.T) *world { t.Helper(); return activeBy(t, policyYAML) }, func(w *world) { w.observed.Others = observed.OtherNodes{} }, false, false},
		"a fleet":            {func(t *testing.T) *world { t.Helper(); return inFleet(t) }, func(*world) {}, false, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := c.world(t)
			for i := range w.observed.Pods {
				w.observed.Pods[i].Node, w.observed.Pods[i].Created = "one", w.observed.Now.Add(-time.Hour)
			}
			w.observed.Others = observed.OtherNodes{Exist: true, Usable: true}
			c.change(w)
			first := w.plan()
			if slices.Contains(kinds(first.Steps), "EvictPod") {
				t.Error("it evicts a pod at once")
			}
			w.observed.Policy.Status = first.Status
			w.observed.Now = w.observed.Now.Add(6 * time.Minute)
			second := w.plan()
			if got := apimeta.IsStatusConditionTrue(second.Status.Conditions, v1alpha1.NotRedundantCondition); got != c.reported {
				t.Errorf("NotRedundant is True: %v, want %v", got, c.reported)
			}
			if got := slices.Contains(kinds(second.Steps), "EvictPod"); got != c.evicted {
				t.Errorf("it evicts a pod: %v, want %v", got, c.evicted)
			}
			for i := range w.observed.Pods {
				w.observed.Pods[i].Node = []string{"one", "two"}[i%2]
			}
			third := w.plan()
			if found := apimeta.FindStatusCondition(third.Status.Conditions, v1alpha1.NotRedundantCondition); found != nil {
				t.Errorf("on two nodes, it is %v", found)
			}
			resolved := slices.ContainsFunc(plan.Events(second.Status, third.Status), func(event gate.Event) bool {
				return event.Reason == v1alpha1.ReasonNotRedundantResolved && !event.Warning
			})
			if resolved != c.reported {
				t.Errorf("there is an event for its end: %v, want %v", resolved, c.reported)
			}
		})
	}
}
