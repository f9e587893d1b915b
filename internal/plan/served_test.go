// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan"
	"github.com/conversion-operator/conversion-operator/internal/plan/converter"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
)

// changing is an active world in which rules were changed, and pods are still as
// they were. It returns the ruleset hash that is active.
func changing(t *testing.T) (*world, string) {
	t.Helper()
	w := active(t)
	before := w.wanted
	w.holdBack = true
	w.changeRules("/")
	w.converge()
	return w, before
}

// switched are the plans that a decision points the CustomResourceDefinition at.
func switched(decided plan.Plan) []string {
	var hashes []string
	for _, s := range decided.Steps {
		if s, ok := s.(step.SwitchCRD); ok {
			hashes = append(hashes, path.Base(*s.Conversion.Webhook.ClientConfig.Service.Path))
		}
	}
	return hashes
}

// TestTheSwitchWaitsForEveryPod that could be asked for the new plan without having it.
func TestTheSwitchWaitsForEveryPod(t *testing.T) {
	cases := map[string]struct {
		change func(w *world, before, both []string)
		want   bool
	}{
		"all pods have it": {func(*world, []string, []string) {}, true},
		"one pod has not":  {func(w *world, before, _ []string) { w.observed.Pods[0].Revisions = before }, false},
		// It is asked before it is called, and API servers retry where it refuses.
		"one that is not ready has not": {func(w *world, before, _ []string) {
			w.observed.Pods[0].Revisions, w.observed.Pods[0].Ready = before, false
		}, true},
		"one that is terminating": {func(w *world, _, _ []string) {
			w.observed.Ending = []observed.EndingPod{{Until: w.observed.Now.Add(time.Second)}}
		}, true},
		"one has not proven it": {func(w *world, _, _ []string) { w.observed.Pods[0].Proof = nil }, false},
		"one has said nothing":  {func(w *world, _, _ []string) { w.observed.Pods[0].Proof, w.observed.Pods[0].Revisions = nil, nil }, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w, before := changing(t)
			both := []string{before, w.wanted}
			for i := range w.observed.Pods {
				w.observed.Pods[i].Revisions = both
			}
			w.observed.Policy.Spec.Verification = v1alpha1.Verification{Samples: new(int32), APIServers: v1alpha1.VerifyNoAPIServer}
			w.carryOut(w.plan()) // API servers are to ask by both
			w.observed.Now = w.observed.Now.Add(10 * time.Second)
			c.change(w, []string{before}, both)
			if got := len(switched(w.plan())) == 1; got != c.want {
				t.Errorf("switches the CustomResourceDefinition: %t, want %t", got, c.want)
			}
		})
	}
}

// TestALostPlanStaysInMemory: pods that still have it are not replaced by pods
// that have not, until none of them is ready.
func TestALostPlanStaysInMemory(t *testing.T) {
	w, before := changing(t)
	w.observed.Revisions = slices.DeleteFunc(w.observed.Revisions, func(stored observed.StoredRevision) bool { return stored.Hash == before })
	w.holdBack = false
	w.converge()
	condition := apimeta.FindStatusCondition(w.observed.Policy.Status.Conditions, v1alpha1.WebhookAvailableCondition)
	if condition.Reason != v1alpha1.ReasonRulesetLost || !strings.Contains(condition.Message, names.Rulesets(crontabs)) {
		t.Errorf("WebhookAvailable is %s: %s; want RulesetLost and the name of the ConfigMap", condition.Reason, condition.Message)
	}
	if !slices.Equal(w.observed.Pods[0].Revisions, []string{before}) {
		t.Errorf("pods carry %v, want what is lost otherwise", w.observed.Pods[0].Revisions)
	}

	for i := range w.observed.Pods {
		w.observed.Pods[i].Ready = false
	}
	w.converge()
	if want := []string{w.wanted}; !slices.Equal(w.observed.Pods[0].Revisions, want) {
		t.Errorf("pods carry %v once no one has the lost plan, want the wanted one", w.observed.Pods[0].Revisions)
	}
	if !apimeta.IsStatusConditionTrue(w.observed.Policy.Status.Conditions, v1alpha1.ReadyCondition) {
		t.Errorf("it never becomes ready:\n%s", w.story())
	}
}

// TestReactivationInTheMiddle of a change names what pods have, and at first what was named.
func TestReactivationInTheMiddle(t *testing.T) {
	none := func(w *world) { w.drop("kubectl-replace") }
	cases := map[string]func(*world){
		"dropped": none,
		"dropped while rules are broken": func(w *world) {
			none(w)
			w.changeRules("")
		},
		"a plan that no one has": func(w *world) {
			w.observed.CRD.Spec.Conversion.Webhook.ClientConfig.Service.Path = new(converter.ConvertPath + "/0123456789abcdef")
		},
		"no plan at all": func(w *world) {
			w.observed.CRD.Spec.Conversion.Webhook.ClientConfig.Service.Path = nil
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			w, before := changing(t)
			change(w)
			if got := switched(w.plan()); !slices.Equal(got, []string{before}) {
				t.Errorf("names the plans %v, want %s", got, before)
			}
		})
	}
}

// TestRefusedRuleset: the condition says why a pod does not load a ruleset.
func TestRefusedRuleset(t *testing.T) {
	w, before := changing(t)
	w.observed.Pods[0].FailedRulesets = map[string]string{w.wanted: "decompress the ruleset: unexpected EOF"}
	expectCondition(t, w.plan().Status, v1alpha1.WebhookAvailableCondition, "False", v1alpha1.ReasonRollingOut,
		"0 of 2 converter pods are ready with the current ruleset; converter pod converter-0 cannot load it: decompress the ruleset: unexpected EOF; still uses the previous ruleset "+before)
}

// TestPodsAreRefreshed again after some seconds, and not in between.
func TestPodsAreRefreshed(t *testing.T) {
	w, _ := changing(t)
	refreshed := func() int {
		count := 0
		for _, s := range w.plan().Steps {
			if refresh, is := s.(step.RefreshPod); is && refresh.Annotation == names.RulesetAnnotation {
				count++
			}
		}
		return count
	}
	if got := refreshed(); got != 0 {
		t.Errorf("%d pods are refreshed again at once", got)
	}
	w.observed.Now = w.observed.Now.Add(6 * time.Second)
	if got := refreshed(); got != 2 {
		t.Errorf("%d pods are refreshed after some seconds, want 2", got)
	}
	w.observed.Pods[0].Revisions = []string{w.wanted}
	w.observed.Pods[1].Ready = false
	if got := refreshed(); got != 0 {
		t.Errorf("%d pods are refreshed that have it or are not ready", got)
	}
}

// TestTooManyRules: rulesets that do not fit into a ConfigMap are refused with what to do.
func TestTooManyRules(t *testing.T) {
	w, before := changing(t)
	for i := range w.observed.Revisions {
		if stored := &w.observed.Revisions[i]; stored.Hash == before {
			stored.Stored = make([]byte, 700<<10)
		}
	}
	expectCondition(t, w.plan().Status, v1alpha1.WebhookAvailableCondition, "False", v1alpha1.ReasonRollingOut,
		"waiting until API servers stop requesting the previous ones")

	alone := active(t)
	for i := range alone.observed.Revisions {
		alone.observed.Revisions[i].Stored = make([]byte, 701<<10)
	}
	expectCondition(t, alone.plan().Status, v1alpha1.RulesValidCondition, "False", v1alpha1.ReasonInvalidRules,
		"use fewer rules, or spec.converter.image")
}
