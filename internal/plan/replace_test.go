// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"testing"
	"time"

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

// podChanges are where a pod is evicted only if that is safe. The condition says what is done, or what is
// to be done.
var podChanges = changes{
	"rules":                  func(w *world) { w.lie(0) },
	"all pods, of rules":     func(w *world) { w.lie(0); w.lie(1) },
	"the last that is ready": func(w *world) { w.lie(0); w.observed.Pods[1].Ready = false },
	"one of two others is not ready": func(w *world) {
		w.observed.Policy.Spec.Workload.Replicas = new(int32(3))
		w.converge()
		w.lie(0)
		w.observed.Pods[2].Ready = false
	},
	"one of two others is not asked yet": func(w *world) {
		w.observed.Policy.Spec.Workload.Replicas = new(int32(3))
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
	w.misbehave = "no"
	w.converge()
	last := len(w.observed.Pods) - 1
	w.observed.Pods[last].Proof = &observed.Proof{}
	if got := kinds(w.plan().Steps); slices.Contains(got, "EvictPod") {
		t.Errorf("steps are %v", got)
	}
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
	if slices.Contains(kinds(first.Steps), "EvictPod") {
		w.t.Error("it evicts a pod at once")
	}
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
	"suspended":     func(w *world) { w.observed.Policy.Spec.Suspend = true },
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
	w.lies = true
	w.observed.Policy.Spec.Workload.HostNetwork = true
	w.observed.Pods[1].Ready = false
	return w
}

// podTroubles: what keeps pods away is told with what to do about it, also if one pod is enough for now.
func podTroubles() changes {
	const noPorts = "it cannot be scheduled: 0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports"
	all := changes{"pods of another shape are not admitted": func(w *world) {
		w.observed.Pods[1].Ready = true
		w.observed.Policy.Spec.Workload.HostNetwork = false
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
		all[name] = func(w *world) { change(&w.observed) }
	}
	return all
}
