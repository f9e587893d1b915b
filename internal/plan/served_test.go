// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
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
	w.useRules("/")
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

// switching is a world in which pods have both rulesets, so that the CustomResourceDefinition is to be written.
func switching(t *testing.T) *world {
	t.Helper()
	w, before := changing(t)
	for i := range w.observed.Pods {
		w.observed.Pods[i].Revisions = []string{before, w.wanted}
	}
	w.observed.Policy.Spec.Verification = v1alpha1.Verification{Samples: new(int32), APIServers: v1alpha1.VerifyNoAPIServer}
	w.carryOut(w.plan()) // API servers are to ask by both
	w.pass(10 * time.Second)
	return w
}

// switchChanges: the switch waits for every pod that could be asked for the new ruleset without having it.
var switchChanges = changes{
	"all pods have it": func(w *world) {},
	"one pod has not":  func(w *world) { w.observed.Pods[0].Revisions = w.observed.Pods[0].Revisions[:1] },
	// It is asked before it is called, and API servers retry where it refuses.
	"one that is not ready has not": func(w *world) {
		w.observed.Pods[0].Revisions, w.observed.Pods[0].Ready = w.observed.Pods[0].Revisions[:1], false
	},
	"one that is terminating": func(w *world) {
		w.observed.Ending = []observed.EndingPod{{Until: w.observed.Now.Add(time.Second)}}
	},
	"one has not proven it": func(w *world) { w.observed.Pods[0].Proof = nil },
	"one has said nothing":  func(w *world) { w.observed.Pods[0].Proof, w.observed.Pods[0].Revisions = nil, nil },
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

func changingRulesNow(t *testing.T) *world {
	t.Helper()
	w, _ := changing(t)
	return w
}

// ruleChanges are while pods get another ruleset. A reactivation names what pods have, and at first what
// was named.
var ruleChanges = changes{
	"dropped": func(w *world) { w.drop("kubectl-replace") },
	"dropped while rules are broken": func(w *world) {
		w.drop("kubectl-replace")
		w.changeRules("")
	},
	"a plan that no one has": func(w *world) {
		w.observed.CRD.Spec.Conversion.Webhook.ClientConfig.Service.Path = new(converter.ConvertPath + "/0123456789abcdef")
	},
	"no plan at all": func(w *world) {
		w.observed.CRD.Spec.Conversion.Webhook.ClientConfig.Service.Path = nil
	},
	"a pod cannot load a ruleset": func(w *world) {
		w.observed.Pods[0].FailedRulesets = map[string]string{w.wanted: "decompress the ruleset: unexpected EOF"}
	},
	"both rulesets are too large": func(w *world) {
		for i := range w.observed.Revisions {
			if stored := &w.observed.Revisions[i]; stored.Hash != w.wanted {
				stored.Stored = make([]byte, 700<<10)
			}
		}
	},
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

// TestRulesValidSays is what the condition says of the rules: the first of
// everything, and how many more there are.
func TestRulesValidSays(t *testing.T) {
	verdict := v1alpha1.Verdict{Version: "v1beta1", ToHub: v1alpha1.FidelityLossy, FromHub: v1alpha1.FidelityPreserved}
	dropped := verdict
	dropped.Dropped = []v1alpha1.VersionedField{{Version: "v1beta1", Path: ".a"}}
	dropped.Preserved = []v1alpha1.VersionedField{{Version: "v1beta1", Path: ".b"}, {Version: "v1", Path: ".c"}, {Version: "v1", Path: ".d"}, {Version: "v1", Path: ".e"}}
	invalid := func(count int, detail string) (errs field.ErrorList) {
		for i := range count {
			errs = append(errs, field.Invalid(field.NewPath("spec").Index(i), "x", detail))
		}
		return errs
	}
	numbered := func(text string, from, to int) (lines []string) {
		for i := from; i <= to; i++ {
			lines = append(lines, fmt.Sprintf(text, i))
		}
		return lines
	}
	for name, test := range map[string]struct {
		change func(*compile.Result)
		want   string
	}{
		"verdicts": {
			func(r *compile.Result) { r.Verdicts = []v1alpha1.Verdict{verdict, dropped} },
			"v1beta1: Lossy to the hub, Preserved from it; v1beta1: Lossy to the hub, Preserved from it, drops v1beta1:.a, preserves v1beta1:.b, v1:.c, v1:.d and more",
		},
		"a warning": {
			func(r *compile.Result) { r.Verdicts, r.Warnings = []v1alpha1.Verdict{verdict}, []string{"beware"} },
			"v1beta1: Lossy to the hub, Preserved from it; warning 1 of 1: beware",
		},
		"many warnings": {
			func(r *compile.Result) { r.Verdicts, r.Warnings = nil, numbered("w%d", 1, 7) },
			strings.Join(numbered("warning %[1]d of 7: w%[1]d", 1, 5), "; "),
		},
		"a long warning": {
			func(r *compile.Result) { r.Verdicts, r.Warnings = nil, []string{strings.Repeat("é", 400)} },
			"warning 1 of 1: " + strings.Repeat("é", 298) + "...",
		},
		"many errors": {
			func(r *compile.Result) { r.Errors = invalid(12, "no") },
			strings.Join(numbered(`spec[%d]: Invalid value: "x": no`, 0, 9), "; ") + "; and 2 more",
		},
		"a long error": {
			func(r *compile.Result) { r.Errors = invalid(1, strings.Repeat("n", 700)) },
			`spec[0]: Invalid value: "x": ` + strings.Repeat("n", 568) + "...",
		},
		"a version that is missing": {
			func(r *compile.Result) {
				r.Verdicts, r.Warnings, r.Missing = []v1alpha1.Verdict{verdict}, []string{"beware"}, invalid(1, "no")
			},
			`spec[0]: Invalid value: "x": no; the converter is ready for it; v1beta1: Lossy to the hub, Preserved from it; warning 1 of 1: beware`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := active(t)
			test.change(&w.observed.Rules)
			condition := apimeta.FindStatusCondition(plan.Make(w.observed).Status.Conditions, v1alpha1.RulesValidCondition)
			if diff := cmp.Diff(test.want, condition.Message); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
