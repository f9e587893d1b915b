//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/story"
)

// TestHostNetwork lets converter pods listen at the address of their node. Whatever
// keeps them from it is said with what to do about it: a namespace that does not
// admit them, a second pod on the only node, a port that something else has taken.
func TestHostNetwork(t *testing.T) {
	ctx := t.Context()
	nodes := &corev1.NodeList{}
	expect.NoError(t, cluster.List(ctx, nodes))
	crontab := inGroup(t, "hostnetwork.example.com")
	applySample(ctx, t, crontab, crontab.Policy)
	change(ctx, t, crontab, `{"spec":{"workload":{"hostNetwork":true,"port":10270,"replicas":1}}}`)
	applySample(ctx, t, crontab, crontab.CRDBoth)
	waitMessage(ctx, t, crontab.CRD(), v1alpha1.WebhookAvailableCondition, v1alpha1.ReasonRollingOut,
		"kubectl label namespace conversion-system --overwrite pod-security.kubernetes.io/enforce=privileged")

	admit(ctx, t, "privileged")
	t.Cleanup(func() { admit(context.WithoutCancel(ctx), t, "restricted") })
	waitReady(ctx, t, crontab.CRD(), v1alpha1.ReasonSucceeded)
	expect.NoError(t, fleet.Create(ctx, crontab.At(crontab.Old), 1, crontab.Object))
	for _, pod := range converters(ctx, t, crontab) {
		if !pod.Spec.HostNetwork || pod.Status.PodIP != pod.Status.HostIP {
			t.Errorf("the pod is at %s, its node at %s", pod.Status.PodIP, pod.Status.HostIP)
		}
	}
	readsUntilRight(ctx, t, crontab, 20)

	more := int32(len(nodes.Items)) + 1 //nolint:gosec // a cluster has not that many nodes
	changeReplicas(ctx, t, crontab, more)
	waitMessage(ctx, t, crontab.CRD(), v1alpha1.WebhookAvailableCondition, v1alpha1.ReasonSomePodsReady, "add nodes, lower spec.workload.replicas")
	readsUntilRight(ctx, t, crontab, 20)
	changeReplicas(ctx, t, crontab, 1)
	waitMessage(ctx, t, crontab.CRD(), v1alpha1.WebhookAvailableCondition, v1alpha1.ReasonPodsReady, "1 of 1")

	taken := inGroup(t, "taken.example.com")
	applySample(ctx, t, taken, taken.Policy)
	change(ctx, t, taken, `{"spec":{"workload":{"hostNetwork":true,"port":10250,"replicas":1}}}`) // the kubelet's
	applySample(ctx, t, taken, taken.CRDBoth)
	waitMessage(ctx, t, taken.CRD(), v1alpha1.WebhookAvailableCondition, v1alpha1.ReasonRollingOut, "something else may listen at its port on that node")
}

// admit says which pods the operator's namespace admits.
func admit(ctx context.Context, t *testing.T, level string) {
	t.Helper()
	run(ctx, t, "kubectl", "label", "namespace", system, "--overwrite", "pod-security.kubernetes.io/enforce="+level)
}

func changeReplicas(ctx context.Context, t *testing.T, crontab story.CronTab, replicas int32) {
	t.Helper()
	change(ctx, t, crontab, fmt.Sprintf(`{"spec":{"workload":{"replicas":%d}}}`, replicas))
}
