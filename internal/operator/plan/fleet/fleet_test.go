// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	appsv1 "k8s.io/api/apps/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/fleet"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
)

// ready is a fleet whose three pods are ready, on nodes of their own.
func ready(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.startPods(3)
	w.rest()
	return w
}

// objects are those that a plan applies, by their kinds.
func objects(t *testing.T, decided fleet.Plan) map[string]map[string]any {
	t.Helper()
	found := map[string]map[string]any{}
	for _, s := range decided.Steps {
		if apply, is := s.(step.Apply); is {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(apply.Object)
			expect.NoError(t, err)
			found[content["kind"].(string)] = content
		}
	}
	return found
}

// TestObjects records what a fleet consists of.
func TestObjects(t *testing.T) {
	decided := fleet.Make(ready(t).observe())
	var text strings.Builder
	found := objects(t, decided)
	for _, kind := range []string{"Deployment", "PodDisruptionBudget", "Service"} {
		rendered, err := yaml.Marshal(found[kind])
		expect.NoError(t, err)
		fmt.Fprintf(&text, "---\n%s", rendered)
	}
	golden.Check(t, text.String(), "objects.yaml")
}

// TestPodsStay: pods do not change with the policies.
func TestPodsStay(t *testing.T) {
	w := ready(t)
	before := deployment(t, fleet.Make(w.observe()))
	w.join("a")
	w.stored = 7
	if after := deployment(t, fleet.Make(w.observe())); !reflect.DeepEqual(before, after) {
		t.Error("the Deployment changes with the policies")
	}
}

func deployment(t *testing.T, decided fleet.Plan) *appsv1.Deployment {
	t.Helper()
	found := &appsv1.Deployment{}
	expect.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(objects(t, decided)["Deployment"], found))
	return found
}

// TestScalingReplacesNoPod: an autoscaler that adds the second pod, or removes it, leaves the template
// unchanged. With the network of nodes, a rollout of one pod begins with the end of that pod.
func TestScalingReplacesNoPod(t *testing.T) {
	for _, hostNetwork := range []bool{false, true} {
		w := ready(t)
		w.fleet.Spec = v1alpha1.ConverterFleetSpec{Replicas: new(int32(1)), MaxReplicas: new(int32(3)), Workload: &v1alpha1.ConverterPods{HostNetwork: hostNetwork}}
		state := w.observe()
		state.Scaled = 1
		one := deployment(t, fleet.Make(state)).Spec
		state.Scaled = 2
		two := deployment(t, fleet.Make(state)).Spec
		expect.Equal(t, "replicas", [2]int32{1, 2}, [2]int32{*one.Replicas, *two.Replicas})
		expect.Equal(t, fmt.Sprintf("template, which scaling is to keep, with hostNetwork %t", hostNetwork), one.Template, two.Template)
	}
}

// TestDecisions records what users read about a fleet, its steps, and whether it must have the finalizer: what
// belongs to a fleet is deleted when no policy uses it and no ruleset is stored.
func TestDecisions(t *testing.T) {
	changes := map[string]func(*world){
		"all is well":    func(*world) {},
		"no certificate": func(w *world) { w.authority, w.certificate = nil, nil },
		"one pod is not ready": func(w *world) {
			w.pods[0].Ready, w.pods[0].Trouble.Message = false, "the image cannot be pulled"
		},
		"no pod is ready":      func(w *world) { w.pods = nil },
		"pods are not created": func(w *world) { w.pods, w.podFailure.Message = nil, "exceeded quota" },
		"a bad patch": func(w *world) {
			w.fleet.Spec.Workload = &v1alpha1.ConverterPods{Patches: []v1alpha1.Patch{{Patch: "what?"}}}
		},
		"one node": func(w *world) { w.onOneNode() },
		"one node, and one pod": func(w *world) {
			w.onOneNode()
			w.pods = w.pods[:1]
		},
		"two nodes": func(w *world) {
			w.onOneNode()
			w.pods[2].Node = "two"
		},
		"unreadable rulesets": func(w *world) { w.unreadable = []string{"a/1", "b/2", "c/3", "d/4", "e/5", "f/6"} },
		"deleted and used": func(w *world) {
			w.join("a")
			w.delete()
		},
		"deleted, and rulesets are left": func(w *world) {
			w.stored = 2
			w.delete()
		},
		"used":        func(w *world) { w.join("a") },
		"one replica": func(w *world) { w.fleet.Spec = v1alpha1.ConverterFleetSpec{Replicas: new(int32(1))} },
		"one replica, or more later": func(w *world) {
			w.fleet.Spec = v1alpha1.ConverterFleetSpec{Replicas: new(int32(1)), MaxReplicas: new(int32(2))}
		},
		"five replicas, and others of the workload": func(w *world) {
			w.fleet.Spec = v1alpha1.ConverterFleetSpec{Replicas: new(int32(5)), Workload: &v1alpha1.ConverterPods{Replicas: new(int32(2))}}
		},
		"unreadable rulesets, and no pods": func(w *world) { w.pods, w.unreadable = nil, []string{"a/1"} },
		"deleted and unused":               (*world).delete,
		"a ruleset is stored":              func(w *world) { w.stored = 1 },
		"deleted, and used before": func(w *world) {
			w.fleet.Status.Policies = 3
			w.delete()
		},
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		w := ready(t)
		w.fleet.Status.Conditions = []metav1.Condition{{Type: v1alpha1.NotRedundantCondition}, {Type: v1alpha1.DeletionBlockedCondition}}
		changes[name](w)
		decided := fleet.Make(w.observe())
		fmt.Fprintf(&text, "# %s\n", name)
		if deletes := slices.ContainsFunc(decided.Steps, func(s step.Step) bool { _, is := s.(step.DeleteChildren); return is }); deletes {
			text.WriteString("It deletes what belongs to it.\n")
		} else {
			w.checkStatus(decided.Status)
			for _, is := range decided.Status.Conditions {
				fmt.Fprintf(&text, "%s=%s %s: %s\n", is.Type, is.Status, is.Reason, is.Message)
			}
		}
		found := objects(t, decided)
		fmt.Fprintf(&text, "It applies %s, and has the finalizer: %t\n", slices.Sorted(maps.Keys(found)), decided.Finalizer)
		if found["Deployment"] != nil {
			spec := deployment(t, decided).Spec
			fmt.Fprintf(&text, "Pods: %d, which know that they are alone: %t\n", *spec.Replicas, slices.Contains(spec.Template.Spec.Containers[0].Args, "--alone"))
		}
		text.WriteString("\n")
	}
	golden.Check(t, text.String(), "decisions.txt")
}

// checkStatus holds kstatus against the conditions.
func (w *world) checkStatus(is v1alpha1.ConverterFleetStatus) {
	w.t.Helper()
	object := w.fleet.DeepCopy()
	object.Status = is
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	expect.NoError(w.t, err)
	result, err := status.Compute(&unstructured.Unstructured{Object: content})
	expect.NoError(w.t, err)
	want := status.InProgressStatus
	switch {
	case !object.DeletionTimestamp.IsZero():
		want = status.TerminatingStatus
	case apimeta.IsStatusConditionTrue(is.Conditions, v1alpha1.StalledCondition):
		want = status.FailedStatus
	case apimeta.IsStatusConditionTrue(is.Conditions, v1alpha1.ReadyCondition):
		want = status.CurrentStatus
	}
	expect.Equal(w.t, "kstatus, which says "+result.Message, want, result.Status)
}

// TestNumbers: what autoscalers and users read.
func TestNumbers(t *testing.T) {
	w := ready(t)
	w.join("a")
	w.join("b")
	w.pods[0].Ready = false
	w.fleet.Generation = 4
	is := fleet.Make(w.observe()).Status
	if is.Replicas != 3 || is.ReadyReplicas != 2 || is.Policies != 2 || is.ObservedGeneration != 4 || is.Certificate == nil || is.Certificate.RotationTime == nil {
		t.Errorf("status is %+v", is)
	}
	expect.Equal(t, "selector", "app.kubernetes.io/component=converter,app.kubernetes.io/instance=converter-fleet-blue", is.Selector)
}

func (w *world) delete() { w.fleet.DeletionTimestamp = &metav1.Time{Time: w.now} }

func (w *world) onOneNode() {
	w.others.Exist = true
	for _, pod := range w.pods {
		pod.Node = "one"
	}
}

// TestPodsOnOneNode: one of them is evicted once the fleet has been known to be on one node for a
// while.
func TestPodsOnOneNode(t *testing.T) {
	w := ready(t)
	w.onOneNode()
	w.others.Usable = true
	for _, pod := range w.pods {
		pod.Created = w.now
	}
	for _, want := range []bool{false, false, true} {
		decided := fleet.Make(w.observe())
		evicts := slices.ContainsFunc(decided.Steps, func(s step.Step) bool { _, is := s.(step.EvictPod); return is })
		expect.Equal(t, fmt.Sprintf("%s after it started, it evicts a pod", w.now.Sub(w.pods[0].Created)), want, evicts)
		w.fleet.Status = decided.Status
		w.pass(3 * time.Minute)
	}
}

// TestEvents: each change of a condition has one event, and so has the end of a problem.
func TestEvents(t *testing.T) {
	w := ready(t)
	after := func(change func()) (events []string) {
		before := w.fleet.Status
		change()
		w.fleet.Status = fleet.Make(w.observe()).Status
		for _, event := range fleet.Events(before, w.fleet.Status) {
			kind := "Normal"
			if event.Warning {
				kind = "Warning"
			}
			events = append(events, kind+" "+event.Action+" "+event.Reason)
		}
		return events
	}
	for _, c := range []struct {
		name   string
		change func()
		want   []string
	}{
		{"nothing", func() {}, nil},
		{"all pods are on one node", w.onOneNode, []string{"Warning NotRedundant OneNode"}},
		{"another node can take them", func() { w.others.Usable = true }, nil},
		{"one is on another node", func() { w.pods[0].Node = "two" }, []string{"Normal NotRedundant Resolved"}},
		{"one is not ready", func() { w.pods[0].Ready = false }, []string{"Normal WebhookAvailable SomePodsReady", "Warning NotRedundant OneNode"}},
		{"one is left", func() { w.pods = w.pods[1:2] }, []string{"Normal NotRedundant Resolved"}},
		{"none is left", func() { w.pods = nil }, []string{"Normal WebhookAvailable NoPodsReady"}},
		{"the patch is wrong", func() {
			w.fleet.Spec.Workload = &v1alpha1.ConverterPods{Patches: []v1alpha1.Patch{{Patch: "what?"}}}
		}, []string{"Warning WebhookAvailable InvalidSpec"}},
	} {
		expect.Equal(t, c.name+": events", c.want, after(c.change))
	}
}
