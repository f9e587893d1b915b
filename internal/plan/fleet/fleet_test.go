// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/fleet"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
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
			if err != nil {
				t.Fatal(err)
			}
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
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "---\n%s", rendered)
	}
	golden.Check(t, text.String(), "objects.yaml")
}

// TestPods: pods mount every shard, none of which must exist, and no token; and they may not change
// with the policies.
func TestPods(t *testing.T) {
	w := ready(t)
	before := deployment(t, fleet.Make(w.observe()))
	pod := before.Spec.Template.Spec
	if mounts := pod.AutomountServiceAccountToken; mounts == nil || *mounts {
		t.Error("it mounts a token")
	}
	// A pod that hangs answers nothing while it drains.
	if grace := pod.Containers[0].LivenessProbe.TerminationGracePeriodSeconds; grace == nil || *grace != 45 || *grace >= *pod.TerminationGracePeriodSeconds {
		t.Errorf("the kubelet restarts a pod that hangs after %v seconds, as it ends others after %d", grace, *pod.TerminationGracePeriodSeconds)
	}
	if !slices.Contains(pod.Containers[0].Args, "--shared") {
		t.Errorf("its arguments are %q", pod.Containers[0].Args)
	}
	var shards []string
	for _, volume := range pod.Volumes {
		if volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			if source.ConfigMap.Optional == nil || !*source.ConfigMap.Optional || len(source.ConfigMap.Items) > 0 {
				t.Errorf("%+v must exist, or is not mounted as a whole", source.ConfigMap)
			}
			shards = append(shards, source.ConfigMap.Name)
		}
	}
	if len(shards) != names.Shards || len(slices.Compact(slices.Sorted(slices.Values(shards)))) != 16 {
		t.Errorf("it mounts %v", shards)
	}
	w.join("a")
	w.stored = 7
	if after := deployment(t, fleet.Make(w.observe())); !reflect.DeepEqual(before, after) {
		t.Error("the Deployment changes with the policies")
	}
}

func deployment(t *testing.T, decided fleet.Plan) *appsv1.Deployment {
	t.Helper()
	found := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects(t, decided)["Deployment"], found); err != nil {
		t.Fatal(err)
	}
	return found
}

// TestReplicas: three by default, and those of the fleet whatever the workload says.
func TestReplicas(t *testing.T) {
	for want, spec := range map[int32]v1alpha1.ConverterFleetSpec{
		3: {},
		1: {Replicas: new(int32(1))},
		5: {Replicas: new(int32(5)), Workload: &v1alpha1.Workload{Replicas: new(int32(2))}},
	} {
		w := ready(t)
		w.fleet.Spec = spec
		if got := *deployment(t, fleet.Make(w.observe())).Spec.Replicas; got != want {
			t.Errorf("%d replicas, want %d", got, want)
		}
	}
}

// TestScalingReplacesNoPod: an autoscaler that adds the second pod, or removes it, leaves the template
// unchanged. With the network of nodes, a rollout of one pod begins with the end of that pod.
func TestScalingReplacesNoPod(t *testing.T) {
	for _, hostNetwork := range []bool{false, true} {
		w := ready(t)
		w.fleet.Spec = v1alpha1.ConverterFleetSpec{Replicas: new(int32(1)), MaxReplicas: new(int32(3)), Workload: &v1alpha1.Workload{HostNetwork: hostNetwork}}
		state := w.observe()
		state.Scaled = 1
		one := deployment(t, fleet.Make(state)).Spec
		state.Scaled = 2
		two := deployment(t, fleet.Make(state)).Spec
		if *one.Replicas != 1 || *two.Replicas != 2 {
			t.Errorf("it has %d and %d replicas", *one.Replicas, *two.Replicas)
		}
		if diff := cmp.Diff(one.Template, two.Template); diff != "" {
			t.Errorf("with hostNetwork %t, scaling replaces all pods (-one +two):\n%s", hostNetwork, diff)
		}
	}
}

// TestAlone: the only pod is told so, unless an autoscaler may start others.
func TestAlone(t *testing.T) {
	for name, c := range map[string]struct {
		spec v1alpha1.ConverterFleetSpec
		want bool
	}{
		"three":              {v1alpha1.ConverterFleetSpec{}, false},
		"one":                {v1alpha1.ConverterFleetSpec{Replicas: new(int32(1))}, true},
		"one, or more later": {v1alpha1.ConverterFleetSpec{Replicas: new(int32(1)), MaxReplicas: new(int32(2))}, false},
	} {
		w := ready(t)
		w.fleet.Spec = c.spec
		if args := deployment(t, fleet.Make(w.observe())).Spec.Template.Spec.Containers[0].Args; slices.Contains(args, "--alone") != c.want {
			t.Errorf("%s: the arguments are %q", name, args)
		}
	}
}

// TestConditions: what users read about a fleet.
func TestConditions(t *testing.T) {
	cases := map[string]struct {
		change                             func(*world)
		condition, status, reason, message string
	}{
		"all is well": {func(*world) {}, "Ready", "True", "Succeeded", "3 of 3 converter pods are ready"},
		"no certificate": {func(w *world) { w.authority, w.certificate = nil, nil },
			"CertificatesReady", "False", "Issuing", "issuing a certificate authority"},
		"no certificate, summary": {func(w *world) { w.authority, w.certificate = nil, nil },
			"Ready", "False", "Issuing", "issuing a certificate authority"},
		"all pods ready": {func(*world) {}, "WebhookAvailable", "True", "AllPodsReady", "3 of 3"},
		"one pod is not ready": {func(w *world) {
			w.pods[0].Ready, w.pods[0].Trouble.Message = false, "the image cannot be pulled"
		}, "WebhookAvailable", "True", "SomePodsReady", "2 of 3 converter pods are ready: conversions work with reduced redundancy; pod pod-1: the image cannot be pulled"},
		"no pod is ready":          {func(w *world) { w.pods = nil }, "WebhookAvailable", "False", "NoPodsReady", "see the pods of Deployment conversion-system/converter-fleet-blue"},
		"no pod is ready, summary": {func(w *world) { w.pods = nil }, "Reconciling", "True", "NoPodsReady", ""},
		"pods are not created": {func(w *world) { w.pods, w.podFailure.Message = nil, "exceeded quota" },
			"WebhookAvailable", "False", "NoPodsReady", "the Deployment cannot create pods: exceeded quota"},
		"a bad patch": {func(w *world) {
			w.fleet.Spec.Workload = &v1alpha1.Workload{Patches: []v1alpha1.Patch{{Patch: "what?"}}}
		}, "WebhookAvailable", "False", "InvalidPatch", "the running converter pods do not change"},
		"a bad patch, summary": {func(w *world) {
			w.fleet.Spec.Workload = &v1alpha1.Workload{Patches: []v1alpha1.Patch{{Patch: "what?"}}}
		}, "Stalled", "True", "InvalidPatch", ""},
		"one node": {func(w *world) { w.onOneNode() }, "NotRedundant", "True", "OneNode", "all 3 ready converter pods are on node one"},
		"one node, and one pod": {func(w *world) {
			w.onOneNode()
			w.pods = w.pods[:1]
		}, "NotRedundant", "", "", ""},
		"two nodes": {func(w *world) {
			w.onOneNode()
			w.pods[2].Node = "two"
		}, "NotRedundant", "", "", ""},
		"unreadable rulesets": {func(w *world) { w.unreadable = []string{"a/1", "b/2", "c/3", "d/4", "e/5", "f/6"} },
			"WebhookAvailable", "False", "RulesetLost", "cannot read the stored rulesets a/1, b/2, c/3, d/4, e/5 and 1 more:"},
		"deleted and used": {func(w *world) {
			w.join("a")
			w.delete()
		}, "DeletionBlocked", "True", "FleetInUse", "1 policies use the fleet: name another one in their spec.converterFleetName, or delete them: a"},
		"deleted, and rulesets are left": {func(w *world) {
			w.stored = 2
			w.delete()
		}, "DeletionBlocked", "True", "FleetInUse", "2 rulesets of policies that no longer exist are stored"},
		"not deleted": {func(w *world) { w.join("a") }, "DeletionBlocked", "", "", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := ready(t)
			w.fleet.Status.Conditions = []metav1.Condition{{Type: v1alpha1.NotRedundantCondition}, {Type: v1alpha1.DeletionBlockedCondition}}
			c.change(w)
			decided := fleet.Make(w.observe())
			w.checkStatus(decided.Status)
			got := apimeta.FindStatusCondition(decided.Status.Conditions, c.condition)
			if got == nil && c.status == "" {
				return
			}
			if got == nil || got.Status != metav1.ConditionStatus(c.status) || got.Reason != c.reason || !strings.Contains(got.Message, c.message) {
				t.Errorf("%s is %+v; want %s %s with %q", c.condition, got, c.status, c.reason, c.message)
			}
		})
	}
}

// checkStatus holds kstatus against the conditions.
func (w *world) checkStatus(is v1alpha1.ConverterFleetStatus) {
	w.t.Helper()
	object := w.fleet.DeepCopy()
	object.Status = is
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		w.t.Fatal(err)
	}
	result, err := status.Compute(&unstructured.Unstructured{Object: content})
	if err != nil {
		w.t.Fatal(err)
	}
	want := status.InProgressStatus
	switch {
	case !object.DeletionTimestamp.IsZero():
		want = status.TerminatingStatus
	case apimeta.IsStatusConditionTrue(is.Conditions, v1alpha1.StalledCondition):
		want = status.FailedStatus
	case apimeta.IsStatusConditionTrue(is.Conditions, v1alpha1.ReadyCondition):
		want = status.CurrentStatus
	}
	if result.Status != want {
		w.t.Errorf("kstatus reads %s, want %s: %s", result.Status, want, result.Message)
	}
}

// TestNumbers: what autoscalers and users read.
func TestNumbers(t *testing.T) {
	w := ready(t)
	w.join("a")
	w.join("b")
	w.pods[0].Ready = false
	w.fleet.Generation = 4
	is := fleet.Make(w.observe()).Status
	if is.Replicas != 3 || is.ReadyReplicas != 2 || is.Policies != 2 || is.ObservedGeneration != 4 || is.Certificate == nil || is.Rotation == nil {
		t.Errorf("status is %+v", is)
	}
	if want := "app.kubernetes.io/component=converter,app.kubernetes.io/instance=converter-fleet-blue"; is.Selector != want {
		t.Errorf("the selector is %s, want %s", is.Selector, want)
	}
}

// TestDeletion: what belongs to a fleet is deleted when no policy uses it and no ruleset is stored.
func TestDeletion(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world)
		want   bool
	}{
		"unused":               {func(*world) {}, true},
		"used":                 {func(w *world) { w.join("a") }, false},
		"a ruleset is stored":  {func(w *world) { w.stored = 1 }, false},
		"used before, not now": {func(w *world) { w.fleet.Status.Policies = 3 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := ready(t)
			c.change(w)
			if decided := fleet.Make(w.observe()); decided.Finalizer == c.want {
				t.Errorf("it has the finalizer before it is deleted: %t", decided.Finalizer)
			}
			w.delete()
			decided := fleet.Make(w.observe())
			deletes := slices.ContainsFunc(decided.Steps, func(s step.Step) bool { _, is := s.(step.DeleteFleetChildren); return is })
			if deletes != c.want || decided.Finalizer == c.want {
				t.Errorf("deletes: %t, keeps the finalizer: %t; want to delete: %t", deletes, decided.Finalizer, c.want)
			}
			if applies := len(objects(t, decided)) > 0; applies == c.want {
				t.Errorf("applies objects: %t", applies)
			}
		})
	}
}

// TestUnreadableRulesets withhold the Deployment only, and only while pods run that have them.
func TestUnreadableRulesets(t *testing.T) {
	w := ready(t)
	w.unreadable = []string{"a/1"}
	found := objects(t, fleet.Make(w.observe()))
	if found["Deployment"] != nil || found["Service"] == nil || found["PodDisruptionBudget"] == nil {
		t.Errorf("%d objects are applied", len(found))
	}
	w.pods = nil
	if found := objects(t, fleet.Make(w.observe())); found["Deployment"] == nil {
		t.Error("no pod runs, and none is started")
	}
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
		if evicts := slices.ContainsFunc(decided.Steps, func(s step.Step) bool { _, is := s.(step.EvictPod); return is }); evicts != want {
			t.Errorf("%s after it started, it evicts a pod: %v", w.now.Sub(w.pods[0].Created), evicts)
		}
		w.fleet.Status = decided.Status
		w.pass(3 * time.Minute)
	}
}
