// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
)

// evict ends a pod, and starts another that answers as it should.
func (w *world) evict(name string) {
	w.t.Helper()
	i := slices.IndexFunc(w.observed.Pods, func(pod observed.Pod) bool { return pod.Name == name })
	if i < 0 {
		w.t.Fatalf("there is no pod %s to evict", name)
	}
	w.tell("  another pod starts in its place")
	another := w.observed.Pods[i]
	another.Name, another.Created, another.Proof = another.Name+"-again", w.observed.Now, &observed.Proof{}
	w.observed.Pods[i] = another
}

// lie lets a pod that was proven answer wrongly.
func (w *world) lie(i int) {
	w.lies = true
	w.observed.Pods[i].Proof = &observed.Proof{Reason: "CanaryFailed", Message: "from v1beta1 to v1: .host has another value"}
}

// TestReplacing: a pod is evicted only where that is safe, and the condition says
// what is done, or what is to be done.
func TestReplacing(t *testing.T) {
	evicted := []string{"EvictPod"}
	cases := map[string]struct {
		policy  string
		change  func(*world)
		message string
		steps   []string
	}{
		"rules": {policyYAML, func(w *world) { w.lie(0) }, "and its Deployment replaces it", evicted},
		"image": {imageYAML, func(w *world) { w.lie(1) }, "and its Deployment replaces it", evicted},
		"a pod that hangs": {imageYAML, func(w *world) { w.observed.Pods[0].Proof = &observed.Proof{Reason: "Timeout", Message: "no answer"} },
			"no answer; it serves traffic", evicted},
		"all pods, of rules": {policyYAML, func(w *world) { w.lie(0); w.lie(1) },
			"see the log of the pods, and restart them with kubectl -n conversion-system rollout restart deployment crontabs-example-com-", nil},
		"all pods, of an image": {imageYAML, func(w *world) { w.lie(0); w.lie(1) },
			"correct spec.converter.image; or restart them with kubectl -n conversion-system delete pods -l conversion-operator.io/revision=", nil},
		"the last that is ready": {policyYAML, func(w *world) { w.lie(0); w.observed.Pods[1].Ready = false },
			"no other pod answers correctly", nil},
		"one of two others is not ready": {policyYAML, func(w *world) {
			w.observed.Policy.Spec.Workload.Replicas = new(int32(3))
			w.converge()
			w.lie(0)
			w.observed.Pods[2].Ready = false
		}, "once all other pods are ready", nil},
		"one of two others is not asked yet": {policyYAML, func(w *world) {
			w.observed.Policy.Spec.Workload.Replicas = new(int32(3))
			w.converge()
			w.lie(0)
			w.observed.Pods[2].Proof = nil
		}, "once all other pods are ready", nil},
		"another one ends": {policyYAML, func(w *world) {
			w.lie(0)
			w.observed.Ending = []observed.EndingPod{{Until: w.observed.Now.Add(time.Minute)}}
		}, "once all other pods are ready", nil},
		// The node of such a pod is lost: the pod remains until the node is back, or is removed.
		"another one should have ended": {policyYAML, func(w *world) {
			w.lie(0)
			w.observed.Ending = []observed.EndingPod{{Until: w.observed.Now.Add(-time.Second)}}
		}, "and its Deployment replaces it", evicted},
		"a young one": {policyYAML, func(w *world) { w.lie(0); w.observed.Pods[0].Created = w.observed.Now.Add(-9 * time.Minute) },
			"the operator evicts it once it is 10m0s old", nil},
		"the budget allows none": {policyYAML, func(w *world) { w.lie(0); w.observed.Evictable = 0 },
			"the operator evicts it once PodDisruptionBudget conversion-system/crontabs-example-com-d884ab8c allows that", nil},
		"a Service": {serviceYAML, func(w *world) { w.answerAt("10.0.0.1:9443", "x509: unknown authority") },
			"its owner must fix or remove it", nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := activeBy(t, c.policy)
			if c.policy == policyYAML {
				w.record(contract.Record{State: contract.StateCompleted, Counters: contract.Counters{Total: 3, Rewritten: 3}})
				w.converge()
			}
			c.change(w)
			decided := w.plan()
			reason := slices.IndexFunc(decided.Status.Conditions, func(is metav1.Condition) bool { return is.Type == v1alpha1.ConversionVerifiedCondition })
			expectCondition(t, decided.Status, v1alpha1.ConversionVerifiedCondition, "False", decided.Status.Conditions[reason].Reason, c.message)
			if diff := cmp.Diff(c.steps, kinds(decided.Steps)); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			if decided.RecheckAfter == 0 || decided.RecheckAfter > 3*time.Second {
				t.Errorf("looks again after %s", decided.RecheckAfter)
			}
		})
	}
}

// TestANewConverterIsNotReplaced: API servers do not call it yet, and to start its
// pods again is of no use.
func TestANewConverterIsNotReplaced(t *testing.T) {
	w := activeBy(t, imageYAML)
	w.useImage("example.com/crontab:2")
	w.converge()
	w.useImage("example.com/crontab:3")
	w.observed.Policy.Spec.Verification.Samples = new(int32)
	w.plan()
	w.misbehave = "no"
	w.converge()
	last := len(w.observed.Pods) - 1
	w.observed.Pods[last].Proof = &observed.Proof{}
	if got := kinds(w.plan().Steps); slices.Contains(got, "EvictPod") {
		t.Errorf("steps are %v", got)
	}
}

// TestWhatStopsAMigration: answers that are wrong do, since they would be stored.
// If there is none, nothing is stored, and the migration tries again.
func TestWhatStopsAMigration(t *testing.T) {
	for reason, stops := range map[string]bool{
		"CanaryFailed": true, "UnexpectedAnswer": true, "WrongRuleset": true,
		"Timeout": false, "ConnectionRefused": false, "TLSVerificationFailed": false,
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t, policyYAML)
			w.applyCRD(bothStoredNew)
			w.converge()
			w.observed.Pods[1].Proof = &observed.Proof{Reason: reason, Message: "no"}
			if got := slices.Contains(kinds(w.plan().Steps), "SuspendRun"); got != stops {
				t.Errorf("the migration is suspended: %t, want %t", got, stops)
			}
		})
	}
}

// aPodGoesWrong, in the midst of a migration.
func aPodGoesWrong(w *world) {
	w.say("Rules are active, and a migration runs.")
	w.applyCRD(bothStoredNew)
	w.converge()
	w.say("A pod answers wrongly.")
	w.lie(0)
	w.converge()
	w.say("The pod in its place goes wrong at once.")
	w.lie(0)
	w.converge()
	w.say("Time passes.")
	w.observed.Now = w.observed.Now.Add(10 * time.Minute)
	w.converge()
	w.say("All of them answer wrongly.")
	w.lie(0)
	w.lie(1)
	w.converge()
	w.say("One of them was restarted by a client.")
	w.observed.Pods[1].Proof = &observed.Proof{}
	w.observed.Pods[0].Proof = &observed.Proof{}
	w.converge()
}
