// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// The scheduler spreads pods over nodes when they start, and leaves them where they are afterwards.
// After the loss of a node, all may be on one, although the lost node is back. So the operator
// evicts one of them: only if all are ready and the PodDisruptionBudget allows it, and at growing
// intervals, because the scheduler may have a reason to start it on the same node again.

// evictionAge is the age of the youngest pod before one is evicted, at least.
const evictionAge = 5 * time.Minute

// RedundancyRecovery is the event for the end of NotRedundant, of a policy or a fleet.
var RedundancyRecovery = gate.Recovery{Condition: v1alpha1.NotRedundantCondition,
	Note: "not redundant resolved: ready converter pods are on several nodes, or only one is ready, or the cluster has no other node"}

// Redundancy has what decides whether pods of one workload survive the loss of a node.
type Redundancy struct {
	// Pods are those that are not being deleted; Ending is the number of others that may still answer.
	Pods   []observed.Pod
	Ending int
	// Workload has the wanted number of pods.
	Workload Workload
	// Evictable is the number of pods that the PodDisruptionBudget allows to evict now.
	Evictable int
	// Others are the nodes that no pod is on.
	Others observed.OtherNodes
	// Before are the conditions so far, which tell since when the pods are known to be on one node.
	Before []metav1.Condition
	Now    time.Time
}

// since is the time since when the pods are known to be on one node; zero if they were not.
func (r Redundancy) since() time.Time {
	if known := apimeta.FindStatusCondition(r.Before, v1alpha1.NotRedundantCondition); known != nil && known.Status == metav1.ConditionTrue {
		return known.LastTransitionTime.Time
	}
	return time.Time{}
}

// OnlyNode is the node that all ready pods are on, if there are several; or empty.
func OnlyNode(pods []observed.Pod) string {
	ready := Ready(pods)
	if len(ready) < 2 || slices.ContainsFunc(ready, func(pod observed.Pod) bool { return pod.Node != ready[0].Node }) {
		return ""
	}
	return ready[0].Node
}

// Ready are the pods that are ready.
func Ready(pods []observed.Pod) []observed.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(pod observed.Pod) bool { return !pod.Ready })
}

// Decide reports pods that are all on one node of a cluster that has others, and evicts one of them
// if another node takes it. Otherwise the outcome is empty.
func (r Redundancy) Decide() (decided gate.Decision) {
	node := OnlyNode(r.Pods)
	if node == "" {
		return decided
	}
	decided.Recheck(evictionAge) // no event tells of other nodes
	if !r.Others.Exist {
		return decided
	}
	ready, since := Ready(r.Pods), r.since()
	says := fmt.Sprintf("all %d ready converter pods are on node %s, and conversions stop if it does: ", len(ready), node)
	youngest := slices.MaxFunc(ready, func(a, b observed.Pod) int { return a.Created.Compare(b.Created) })
	wait := max(evictionAge, r.Now.Sub(since)/2)
	switch {
	case !r.Others.Usable:
		says += "no other node takes them: make one available, or change their node selector, affinity or tolerations"
	case int32(len(ready)) < r.Workload.Replicas() || len(r.Pods) > len(ready) || r.Ending > 0: //nolint:gosec // there are not that many
		says += "the operator evicts one once all are ready"
	case r.Evictable == 0:
		says += fmt.Sprintf("the operator evicts one once PodDisruptionBudget %s/%s allows that", r.Workload.Settings.Namespace, r.Workload.Name)
	case since.IsZero() || !decided.Due(youngest.Created.Add(wait).Sub(r.Now)):
		says += "the operator evicts one after a while, so that it starts on another node"
	default:
		says += "the operator evicts one, so that it starts on another node"
		decided.Do(step.EvictPod{Name: youngest.Name, UID: youngest.UID, Note: youngest.Name + ": all converter pods are on node " + node})
	}
	decided.Outcome = gate.Abnormal(v1alpha1.ReasonOneNode, says)
	return decided
}
