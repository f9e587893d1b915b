// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	schedulinghelpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/operator/pages"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/workload"
)

const (
	// nodesPage is the most nodes in one page.
	nodesPage = 500
	// nodesLife is how long what was found about nodes is used.
	nodesLife = time.Minute
)

// nodeLook is what was found about nodes.
type nodeLook struct {
	at    time.Time
	found observed.OtherNodes
}

// otherNodes looks for other nodes if all ready pods are on one. Nothing about conversions depends on
// it, so an error counts as if there were none.
func (r *ConversionPolicyReconciler) otherNodes(ctx context.Context, pods []observed.Pod) observed.OtherNodes {
	node := workload.OnlyNode(pods)
	if node == "" {
		return observed.OtherNodes{}
	}
	// The order of pods differs from read to read, and the result is known by one of them.
	one := slices.MinFunc(workload.Ready(pods), func(a, b observed.Pod) int { return cmp.Compare(a.UID, b.UID) })
	r.nodes.forgetAll(func(_ types.UID, look nodeLook) bool { return r.Now().Sub(look.at) >= nodesLife })
	if look, is := r.nodes.get(one.UID); is {
		return look.found
	}
	found, err := r.lookForNodes(ctx, one.Name, node)
	if err != nil {
		ctrl.LoggerFrom(ctx).Info("Could not look for other nodes than the one that all converter pods are on", "reason", err.Error())
		return observed.OtherNodes{}
	}
	r.nodes.put(one.UID, nodeLook{r.Now(), found})
	return found
}

func (r *ConversionPolicyReconciler) lookForNodes(ctx context.Context, podName, than string) (found observed.OtherNodes, err error) {
	pod := &corev1.Pod{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Settings.Namespace, Name: podName}, pod); err != nil {
		return found, err
	}
	page := &corev1.NodeList{}
	var size pages.Size
	for {
		err := size.Read(ctx, nodesPage, func(ctx context.Context, limit int64) error {
			return r.Live.List(ctx, page, client.Limit(limit), client.Continue(page.Continue))
		})
		if err != nil {
			return found, err
		}
		for i := range page.Items {
			if node := &page.Items[i]; node.Name != than {
				found.Exist, found.Usable = true, found.Usable || admits(node, pod)
			}
		}
		if page.Continue == "" || found.Usable {
			return found, nil
		}
	}
}

// admits reports that a node is ready and takes a pod, by its labels and taints. The scheduler
// decides the same (pkg/scheduler/framework/plugins of k8s.io/kubernetes: nodeunschedulable,
// tainttoleration, nodeaffinity).
func admits(node *corev1.Node, pod *corev1.Pod) bool {
	ready := slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	})
	matches, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node)
	_, tainted := schedulinghelpers.FindMatchingUntoleratedTaint(ctrl.Log, node.Spec.Taints, pod.Spec.Tolerations, func(taint *corev1.Taint) bool {
		return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
	}, true)
	return ready && !node.Spec.Unschedulable && err == nil && matches && !tainted
}
