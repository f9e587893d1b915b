// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/converter"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// lie lets a pod that was proven answer wrongly.
func (w *world) lie(i int) {
	w.Lies = true
	w.observed.Pods[i].Proof = &observed.Proof{Reason: "CanaryFailed", Message: "from v1beta1 to v1: .host has another value"}
}

// podChanges are where a pod is evicted only if that is safe. The condition says what is done, or what is
// to be done.
var podChanges = changes{
	"rules":                  func(w *world) { w.lie(0) },
	"all pods, of rules":     func(w *world) { w.lie(0); w.lie(1) },
	"the last that is ready": func(w *world) { w.lie(0); w.observed.Pods[1].Ready = false },
	"one of two others is not ready": func(w *world) {
		w.observed.Policy.Spec.Workload.Dedicated.Replicas = new(int32(3))
		w.converge()
		w.lie(0)
		w.observed.Pods[2].Ready = false
	},
	"one of two others is not asked yet": func(w *world) {
		w.observed.Policy.Spec.Workload.Dedicated.Replicas = new(int32(3))
		w.converge()
		w.lie(0)
		w.observed.Pods[2].Proof = nil
	},
	"another one ends": func(w *world) {
		w.lie(0)
		w.observed.Ending = []observed.EndingPod{{Until: w.observed.Now.Add(time.Minute)}}
	},
	// The node of such a pod is lost: the pod remains until the node is back, or is removed.
	"another one should have ended": func(w *world) {
		w.lie(0)
		w.observed.Ending = []observed.EndingPod{{Until: w.observed.Now.Add(-time.Second)}}
	},
	"a young one":            func(w *world) { w.lie(0); w.observed.Pods[0].Created = w.observed.Now.Add(-9 * time.Minute) },
	"the budget allows none": func(w *world) { w.lie(0); w.observed.Evictable = 0 },
}

// TestANewConverterIsNotReplaced: API servers do not call it yet, and to start its
// pods again is of no use.
func TestANewConverterIsNotReplaced(t *testing.T) {
	w := activeBy(t, imageYAML)
	w.runImage("example.com/crontab:2")
	w.useImage("example.com/crontab:3")
	w.observed.Policy.Spec.Verification.Samples = new(int32)
	w.plan()
	w.Misbehave = "no"
	w.converge()
	last := len(w.observed.Pods) - 1
	w.observed.Pods[last].Proof = &observed.Proof{}
	expect.Equal(t, "it evicts a pod", false, slices.Contains(kinds(w.plan().Steps), "EvictPod"))
}

// aPodGoesWrong, in the midst of a migration.
func aPodGoesWrong(w *world) {
	w.say("Rules are active, and a migration runs.")
	w.define(bothStoredNew)
	w.say("A pod answers wrongly.")
	w.lie(0)
	w.converge()
	w.say("The pod in its place goes wrong at once.")
	w.lie(0)
	w.converge()
	w.say("Time passes.")
	w.later(10 * time.Minute)
	w.say("All of them answer wrongly.")
	w.lie(0)
	w.lie(1)
	w.converge()
	w.say("One of them was restarted by a client.")
	w.observed.Pods[1].Proof = &observed.Proof{}
	w.observed.Pods[0].Proof = &observed.Proof{}
	w.converge()
}

// crowd has all pods on one node for a while, of two. The pods of a policy alone are reported, and one of them is
// evicted. A fleet takes care of its own pods.
func (w *world) crowd() {
	w.t.Helper()
	for i := range w.observed.Pods {
		w.observed.Pods[i].Node, w.observed.Pods[i].Created = "one", w.observed.Now.Add(-time.Hour)
	}
	w.observed.Others = observed.OtherNodes{Exist: true, Usable: true}
	first := w.plan()
	expect.Equal(w.t, "it evicts a pod at once", false, slices.Contains(kinds(first.Steps), "EvictPod"))
	w.observed.Policy.Status = first.Status
	w.pass(6 * time.Minute)
}

// crowded is a world in which all pods are on one node.
func crowded(t *testing.T) *world {
	t.Helper()
	w := active(t)
	w.crowd()
	return w
}

// nodeChanges are while all pods are on one node.
var nodeChanges = changes{
	"nothing":       func(*world) {},
	"paused":        func(w *world) { w.observed.Policy.Spec.Paused = true },
	"no other node": func(w *world) { w.observed.Others = observed.OtherNodes{} },
	"two nodes": func(w *world) {
		for i := range w.observed.Pods {
			w.observed.Pods[i].Node = []string{"one", "two"}[i%2]
		}
	},
}

// inTrouble is a world in the network of nodes in which one of two pods is ready.
func inTrouble(t *testing.T) *world {
	t.Helper()
	w := active(t)
	w.Lies = true
	w.observed.Policy.Spec.Workload.Dedicated.HostNetwork = true
	w.observed.Pods[1].Ready = false
	return w
}

// podTroubles: what keeps pods away is told with what to do about it, also if one pod is enough for now.
func podTroubles() changes {
	const noPorts = "it cannot be scheduled: 0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports"
	all := changes{"pods of another shape are not admitted": func(w *world) {
		w.observed.Pods[1].Ready = true
		w.observed.Policy.Spec.Workload.Dedicated.HostNetwork = false
		w.observed.PodFailure.Message = "exceeded quota"
	}}
	for name, change := range map[string]func(*observed.Cluster){
		"no free ports": func(o *observed.Cluster) {
			o.Pods[1].Trouble = observed.PodTrouble{Cause: observed.PodWithoutPort, Message: noPorts}
		},
		"the port is in use": func(o *observed.Cluster) {
			o.Pods[1].Trouble = observed.PodTrouble{Cause: observed.PodExits, Message: "container converter exits on start, see its log"}
		},
		"not admitted": func(o *observed.Cluster) {
			o.PodFailure = observed.PodTrouble{Cause: observed.PodForbidden, Message: `violates PodSecurity "restricted:latest": host namespaces`}
		},
		"another cause": func(o *observed.Cluster) { o.PodFailure.Message = "exceeded quota" },
	} {
		all[name] = func(w *world) { change(w.observed) }
	}
	return all
}

// changing is an active world in which rules were changed, and pods are still as
// they were. It returns the ruleset hash that is active.
func changing(t *testing.T) (*world, string) {
	t.Helper()
	w := active(t)
	before := w.wanted
	w.HoldBack = true
	w.useRules("/")
	return w, before
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
	"all pods have it": func(*world) {},
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
	w.HoldBack = false
	w.converge()
	condition := apimeta.FindStatusCondition(w.observed.Policy.Status.Conditions, v1alpha1.WebhookAvailableCondition)
	if condition.Reason != v1alpha1.ReasonRulesetLost || !strings.Contains(condition.Message, names.Rulesets(crontabs)) {
		t.Errorf("WebhookAvailable is %s: %s; want RulesetLost and the name of the ConfigMap", condition.Reason, condition.Message)
	}
	expect.Equal(t, "plans that pods carry, which are lost otherwise", []string{before}, w.observed.Pods[0].Revisions)

	for i := range w.observed.Pods {
		w.observed.Pods[i].Ready = false
	}
	w.converge()
	expect.Equal(t, "plans that pods carry once no one has the lost one", []string{w.wanted}, w.observed.Pods[0].Revisions)
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
	"dropped": func(w *world) { w.Drop("kubectl-replace") },
	"dropped while rules are broken": func(w *world) {
		w.Drop("kubectl-replace")
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
	expect.Equal(t, "pods are refreshed again at once", 0, refreshed())
	w.observed.Now = w.observed.Now.Add(6 * time.Second)
	expect.Equal(t, "pods are refreshed after some seconds", 2, refreshed())
	w.observed.Pods[0].Revisions = []string{w.wanted}
	w.observed.Pods[1].Ready = false
	expect.Equal(t, "pods are refreshed that have it or are not ready", 0, refreshed())
}

// TestRulesValidSays is what the condition says of the rules: the first of
// everything, and how many more there are.
func TestRulesValidSays(t *testing.T) {
	verdict := compile.Verdict{Version: "v1beta1", ToHub: v1alpha1.FidelityLossy, FromHub: v1alpha1.FidelityPreserved}
	dropped := verdict
	dropped.Dropped = []compile.VersionedField{{Version: "v1beta1", Path: ".a"}}
	dropped.Preserved = []compile.VersionedField{{Version: "v1beta1", Path: ".b"}, {Version: "v1", Path: ".c"}, {Version: "v1", Path: ".d"}, {Version: "v1", Path: ".e"}}
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
			func(r *compile.Result) { r.Verdicts = []compile.Verdict{verdict, dropped} },
			"v1beta1: Lossy to the hub, Preserved from it; v1beta1: Lossy to the hub, Preserved from it, drops v1beta1:.a, preserves v1beta1:.b, v1:.c, v1:.d and more",
		},
		"a warning": {
			func(r *compile.Result) { r.Verdicts, r.Warnings = []compile.Verdict{verdict}, []string{"beware"} },
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
				r.Verdicts, r.Warnings, r.Missing = []compile.Verdict{verdict}, []string{"beware"}, invalid(1, "no")
			},
			`spec[0]: Invalid value: "x": no; the converter is ready for it; v1beta1: Lossy to the hub, Preserved from it; warning 1 of 1: beware`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := active(t)
			test.change(&w.observed.Rules)
			condition := apimeta.FindStatusCondition(plan.Make(*w.observed).Status.Conditions, v1alpha1.RulesValidCondition)
			expect.Equal(t, "condition.Message", test.want, condition.Message)
		})
	}
}
