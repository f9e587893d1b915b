//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// TestAvailability disturbs converter pods while a client reads objects that are converted each
// time. No read fails or returns wrong data.
func TestAvailability(t *testing.T) {
	t.Parallel()
	cases := map[string]func(context.Context, *testing.T, scenarios.CronTab){
		"a pod is deleted":     deletePod,
		"a pod is killed":      killConverter,
		"pods are replaced":    replacePods,
		"a node is drained":    drain,
		"pods are deleted all": deleteInTurn,
	}
	for name, happens := range cases {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			crontab := inGroup(t, strings.ReplaceAll(name, " ", "-")+".available.example.com")
			applySample(ctx, t, crontab, crontab.CRDBoth)
			applySample(ctx, t, crontab, crontab.Policy)
			waitReady(ctx, t, crontab.CRD(), v1alpha1.ReasonSucceeded)
			expect.NoError(t, fleet.Create(ctx, crontab.At(crontab.Old), 3, crontab.Object))
			var readers []*scenarios.Reader
			for i := range 3 {
				want := crontab.Object(i)
				readers = append(readers, fleet.Read(ctx, crontab.At(crontab.New), want.GetName(), func(object *unstructured.Unstructured) error {
					return checkRead(object, want)
				}))
			}
			happens(ctx, t, crontab)
			waitConverters(ctx, t, crontab)
			for _, reader := range readers {
				reads, err := reader.Stop()
				if err != nil {
					t.Errorf("a read failed after %d: %v", reads, err)
				}
				t.Logf("%d reads", reads)
			}
		})
	}
}

// checkRead compares an object at the new version with the one written at the old version.
func checkRead(object, want *unstructured.Unstructured) error {
	if got := fmt.Sprint(object.Object["host"], ":", object.Object["port"]); got != want.Object["hostPort"] {
		return fmt.Errorf("%s is read as %s, and was written as %s", want.GetName(), got, want.Object["hostPort"])
	}
	return nil
}

func converters(ctx context.Context, t *testing.T, crontab scenarios.CronTab) []corev1.Pod {
	t.Helper()
	return pods(ctx, t, client.MatchingLabels{
		names.ComponentLabel: names.ConverterComponent, names.InstanceLabel: names.Child(crontab.CRD())})
}

// waitConverters waits until two pods are ready, and none is terminating.
func waitConverters(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	t.Helper()
	expect.Eventually(t, "two converter pods are ready, and no other is left", func() (bool, string) {
		found := converters(ctx, t, crontab)
		for _, pod := range found {
			if !ready(&pod) || !pod.DeletionTimestamp.IsZero() {
				return false, pod.Name + " is not ready, or ends"
			}
		}
		return len(found) == 2, fmt.Sprintf("%d pods", len(found))
	})
}

func ready(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func deletePod(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	t.Helper()
	expect.NoError(t, cluster.Delete(ctx, &converters(ctx, t, crontab)[0]))
}

// deleteInTurn deletes every pod, each after the previous one is replaced.
func deleteInTurn(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	t.Helper()
	for _, pod := range converters(ctx, t, crontab) {
		expect.NoError(t, cluster.Delete(ctx, &pod))
		waitConverters(ctx, t, crontab)
	}
}

// replacePods does the same as kubectl rollout restart.
func replacePods(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	t.Helper()
	before := map[types.UID]bool{}
	for _, pod := range converters(ctx, t, crontab) {
		before[pod.UID] = true
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: names.Child(crontab.CRD())}}
	patch := []byte(`{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"now"}}}}}`)
	expect.NoError(t, cluster.Patch(ctx, deployment, client.RawPatch(types.MergePatchType, patch)))
	expect.Eventually(t, "no previous pod is left", func() (bool, string) {
		for _, pod := range converters(ctx, t, crontab) {
			if before[pod.UID] {
				return false, pod.Name
			}
		}
		return true, ""
	})
}

// drain cordons all nodes and evicts the converter pods, like kubectl drain: the second pod can be
// evicted only after the first one is replaced.
func drain(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	t.Helper()
	all := converters(ctx, t, crontab)
	cordon(ctx, t, true)
	defer cordon(ctx, t, false)
	expect.NoError(t, evict(ctx, &all[0]))
	expect.Eventually(t, "the evicted pod is gone, and the other one stays", func() (bool, string) {
		if err := evict(ctx, &all[1]); !apierrors.IsTooManyRequests(err) {
			t.Fatalf("the last converter pod may be evicted: %v", err)
		}
		err := cluster.Get(ctx, client.ObjectKeyFromObject(&all[0]), &corev1.Pod{})
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
	cordon(ctx, t, false)
	waitConverters(ctx, t, crontab)
	expect.Eventually(t, "the other one may go too", func() (bool, string) {
		err := evict(ctx, &all[1])
		return err == nil, fmt.Sprint(err)
	})
}

func evict(ctx context.Context, pod *corev1.Pod) error {
	return cluster.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}})
}

func cordon(ctx context.Context, t *testing.T, unschedulable bool) {
	t.Helper()
	nodes := &corev1.NodeList{}
	expect.NoError(t, cluster.List(ctx, nodes))
	patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, unschedulable)
	for i := range nodes.Items {
		expect.NoError(t, cluster.Patch(ctx, &nodes.Items[i], client.RawPatch(types.MergePatchType, patch)))
	}
}
