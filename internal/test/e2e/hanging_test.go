//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// TestHangingPod suspends the process of one of two converter pods. A request that it has accepted
// ends with the API server's timeout. The other pod answers all requests once the suspended one is
// not ready any more, and no answer is wrong. If the processes of the cluster are not visible from
// here, the pod is killed instead.
func TestHangingPod(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	crontab := inGroup(t, "hanging.example.com")
	applySample(ctx, t, crontab, crontab.CRDBoth)
	applySample(ctx, t, crontab, crontab.Policy)
	waitReady(ctx, t, crontab.CRD(), v1alpha1.ReasonSucceeded)
	expect.NoError(t, fleet.Create(ctx, crontab.At(crontab.Old), 1, crontab.Object))
	all := converters(ctx, t, crontab)
	victim := all[0]
	process := processOf(t, &victim, "serve")
	if process == 0 && os.Getenv(scenarios.EndpointVariable) != "" {
		t.Fatal("the pod's process is not found on the project's own cluster")
	}
	if process == 0 {
		kill(ctx, t, all[:1])
	} else {
		signal(t, process, syscall.SIGSTOP)
		t.Cleanup(func() { _ = syscall.Kill(process, syscall.SIGCONT) })
		expect.Eventually(t, "the pod that hangs is not ready", func() (bool, string) {
			for _, pod := range converters(ctx, t, crontab) {
				if pod.UID == victim.UID {
					return !ready(&pod), "it is"
				}
			}
			return true, ""
		})
	}
	failures := readsUntilRight(ctx, t, crontab, 50)
	t.Logf("%d reads failed before 50 in a row did not", failures)
	policy := getPolicy(ctx, t, crontab.CRD())
	if process != 0 && policy.Status.Webhook.Ready != 1 {
		t.Errorf("status.webhook says that %d pods are ready, want 1", policy.Status.Webhook.Ready)
	}
	if process != 0 {
		signal(t, process, syscall.SIGCONT)
	}
	waitConverters(ctx, t, crontab)
}

// readsUntilRight reads until inARow consecutive reads succeed, and returns the number of failures
// before. Wrong data fails the test.
func readsUntilRight(ctx context.Context, t *testing.T, crontab scenarios.CronTab, inARow int) (failures int) {
	t.Helper()
	want, right := crontab.Object(0), 0
	expect.Eventually(t, "reads are answered", func() (bool, string) {
		object, err := fleet.Get(ctx, crontab.At(crontab.New), want.GetName())
		if err != nil {
			failures, right = failures+1, 0
			return false, err.Error()
		}
		expect.NoError(t, checkRead(object, want))
		right++
		return right == inARow, ""
	})
	return failures
}

// processOf returns the PID of the process in a pod that has an argument, or 0 if it is not visible
// from here.
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

func signal(t *testing.T, process int, signal syscall.Signal) {
	t.Helper()
	expect.NoError(t, syscall.Kill(process, signal))
}
