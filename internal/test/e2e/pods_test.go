//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// pods lists the operator's pods with labels.
func pods(ctx context.Context, t *testing.T, labels client.MatchingLabels) []corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	expect.NoError(t, cluster.List(ctx, list, client.InNamespace(system), labels))
	return list.Items
}

func managers(ctx context.Context, t *testing.T) []corev1.Pod {
	t.Helper()
	return pods(ctx, t, client.MatchingLabels{names.ComponentLabel: "manager"})
}

// ofPolicy lists the converter pods or the migration pods of a policy.
func ofPolicy(ctx context.Context, t *testing.T, crontab scenarios.CronTab, component string) []corev1.Pod {
	t.Helper()
	return pods(ctx, t, client.MatchingLabels{names.ComponentLabel: component, names.InstanceLabel: names.Child(crontab.CRD())})
}

func converters(ctx context.Context, t *testing.T, crontab scenarios.CronTab) []corev1.Pod {
	t.Helper()
	return ofPolicy(ctx, t, crontab, names.ConverterComponent)
}

func uids(all []corev1.Pod) map[types.UID]bool {
	found := map[types.UID]bool{}
	for _, pod := range all {
		found[pod.UID] = true
	}
	return found
}

// serves reports whether a pod is ready and not ending.
func serves(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue && pod.DeletionTimestamp.IsZero()
		}
	}
	return false
}

// waitPods waits until there is that number of pods, all of them ready.
func waitPods(t *testing.T, count int, list func() []corev1.Pod) {
	t.Helper()
	expect.Eventually(t, fmt.Sprintf("%d pods are ready, and no other is left", count), func() (bool, string) {
		found := list()
		for _, pod := range found {
			if !serves(&pod) {
				return false, pod.Name + " is not ready, or ends"
			}
		}
		return len(found) == count, fmt.Sprintf("%d pods", len(found))
	})
}

// waitConverters waits until the two converter pods of a policy are ready.
func waitConverters(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	t.Helper()
	waitPods(t, 2, func() []corev1.Pod { return converters(ctx, t, crontab) })
}

func waitManagers(ctx context.Context, t *testing.T, count int) {
	t.Helper()
	waitPods(t, count, func() []corev1.Pod { return managers(ctx, t) })
}

// kill deletes pods without a grace period, as when a node is lost.
func kill(ctx context.Context, t *testing.T, victims []corev1.Pod) {
	t.Helper()
	if len(victims) == 0 {
		t.Fatal("there is nothing to kill")
	}
	for i := range victims {
		err := client.IgnoreNotFound(cluster.Delete(ctx, &victims[i], client.GracePeriodSeconds(0)))
		expect.NoError(t, err)
	}
}

func evict(ctx context.Context, pod *corev1.Pod) error {
	return cluster.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}})
}

// send sends a signal to the process in a pod that has an argument, and returns its PID. If the processes
// of the cluster are not visible from here, it kills the pod instead, and returns 0.
func send(ctx context.Context, t *testing.T, pod *corev1.Pod, argument string, signal syscall.Signal) (process int) {
	t.Helper()
	process = processOf(t, pod, argument)
	if process == 0 {
		if os.Getenv(scenarios.EndpointVariable) != "" {
			t.Fatalf("the process of %s is not found on the project's own cluster", pod.Name)
		}
		kill(ctx, t, []corev1.Pod{*pod})
		return 0
	}
	expect.NoError(t, syscall.Kill(process, signal))
	return process
}

// processOf returns 0 if the process is not visible from here.
func processOf(t *testing.T, pod *corev1.Pod, argument string) int {
	t.Helper()
	_, container, _ := strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "://")
	found, err := filepath.Glob("/proc/[0-9]*/cgroup")
	expect.NoError(t, err)
	for _, file := range found {
		groups, err := os.ReadFile(file)
		command, other := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if err != nil || other != nil || !bytes.Contains(groups, []byte(container)) || !bytes.Contains(command, []byte("\x00"+argument+"\x00")) {
			continue
		}
		process, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		expect.NoError(t, err)
		return process
	}
	return 0
}
