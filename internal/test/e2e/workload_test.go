//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/workload"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/release"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// TestWorkload changes the template of converter pods while an object is read: another port, a
// priority, and a patch.
func TestWorkload(t *testing.T) {
	release.Only(t, "TestShapes", "TestPatches")
	t.Parallel()
	ctx := t.Context()
	crontab := inGroup(t, "workload.example.com")
	applySample(ctx, t, crontab, crontab.CRDBoth)
	applySample(ctx, t, crontab, crontab.Policy)
	waitReady(ctx, t, crontab.CRD(), v1alpha1.ReasonSucceeded)
	expect.NoError(t, fleet.Create(ctx, crontab.At(crontab.Old), 5, crontab.Object))
	reader := fleet.Read(ctx, crontab.At(crontab.New), "job-0001", func(object *unstructuredObject) error {
		if host, _, _ := unstructured.NestedString(object.Object, "host"); host != "worker-1.example.com" {
			return fmt.Errorf("host is %q", host)
		}
		return nil
	})
	change(ctx, t, crontab, `{"spec":{"workload":{"port":10260,"priorityClassName":"system-cluster-critical","patches":[
		{"target":{"kind":"Deployment"},"patch":"[{\"op\": \"add\", \"path\": \"/spec/template/metadata/labels/team\", \"value\": \"data\"}]"}]}}}`)
	expect.Eventually(t, "all pods are of the new shape, and ready", func() (bool, string) {
		found := pods(ctx, t, client.MatchingLabels{names.ComponentLabel: names.ConverterComponent, names.InstanceLabel: names.Child(crontab.CRD())})
		for _, pod := range found {
			if pod.Labels["team"] != "data" || workload.PortOf(&pod.Spec) != 10260 || pod.Spec.PriorityClassName != "system-cluster-critical" {
				return false, pod.Name + " is of the old shape"
			}
		}
		return len(found) == 2, fmt.Sprintf("%d pods", len(found))
	})
	waitReady(ctx, t, crontab.CRD(), v1alpha1.ReasonSucceeded)
	if reads, err := reader.Stop(); err != nil {
		t.Errorf("after %d reads: %v", reads, err)
	}
	if proven := getPolicy(ctx, t, crontab.CRD()).Status.Webhook; proven.Ready != 2 || proven.Desired != 2 {
		t.Errorf("%d of %d converter pods are ready, want 2 of 2", proven.Ready, proven.Desired)
	}
}

// TestHostNetwork runs converter pods on the host network. The policy reports each problem with a
// remedy: a namespace that rejects the pods, a second pod on the only node, a port that is in use.
func TestHostNetwork(t *testing.T) {
	release.Only(t, "TestDecisions", "TestShapes")
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
	waitMessage(ctx, t, crontab.CRD(), v1alpha1.WebhookAvailableCondition, v1alpha1.ReasonAllPodsReady, "1 of 1")

	taken := inGroup(t, "taken.example.com")
	applySample(ctx, t, taken, taken.Policy)
	change(ctx, t, taken, `{"spec":{"workload":{"hostNetwork":true,"port":10250,"replicas":1}}}`) // the kubelet's
	applySample(ctx, t, taken, taken.CRDBoth)
	waitMessage(ctx, t, taken.CRD(), v1alpha1.WebhookAvailableCondition, v1alpha1.ReasonRollingOut, "another process may listen at its port on that node")
}

// admit sets the Pod Security level of the operator's namespace.
func admit(ctx context.Context, t *testing.T, level string) {
	t.Helper()
	run(ctx, t, "kubectl", "label", "namespace", system, "--overwrite", "pod-security.kubernetes.io/enforce="+level)
}

func changeReplicas(ctx context.Context, t *testing.T, crontab scenarios.CronTab, replicas int32) {
	t.Helper()
	change(ctx, t, crontab, fmt.Sprintf(`{"spec":{"workload":{"replicas":%d}}}`, replicas))
}
