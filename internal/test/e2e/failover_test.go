//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// mostWithoutLeader bounds the time without a leader after the leader died.
const mostWithoutLeader = 20 * time.Second

// failOver kills the leading manager without a chance to release its lease, and compares the lease
// before and after. If the processes of the cluster are not visible from here, it deletes the pod
// instead.
func failOver(ctx context.Context, t *testing.T) {
	t.Helper()
	last := getLease(ctx, t)
	leader := leaderPod(ctx, t, last)
	if leader == nil {
		t.Fatalf("the lease is of %v, which is not a pod's", last.Spec.HolderIdentity)
	}
	process := processOf(t, leader, "manager")
	if process == 0 && os.Getenv(scenarios.EndpointVariable) != "" {
		t.Fatal("the leader's process is not found on the project's own cluster")
	}
	if process == 0 {
		kill(ctx, t, []corev1.Pod{*leader})
	} else {
		signal(t, process, syscall.SIGKILL)
	}
	var next *coordinationv1.Lease
	expect.Eventually(t, "another leads", func() (bool, string) {
		next = getLease(ctx, t)
		if holder := next.Spec.HolderIdentity; holder == nil || *holder == "" || *holder == *last.Spec.HolderIdentity {
			last = latest(last, next)
			return false, fmt.Sprint(next.Spec)
		}
		return true, ""
	})
	without := next.Spec.AcquireTime.Sub(last.Spec.RenewTime.Time)
	t.Logf("%s renewed its lease at %s, and %s took it %s later",
		*last.Spec.HolderIdentity, last.Spec.RenewTime, *next.Spec.HolderIdentity, without)
	if without >= mostWithoutLeader {
		t.Errorf("no one led for %s", without)
	}
}

// latest returns the lease as last held by the leader: releasing it clears the name.
func latest(last, next *coordinationv1.Lease) *coordinationv1.Lease {
	if next.Spec.HolderIdentity == nil || *next.Spec.HolderIdentity == "" {
		return last
	}
	return next
}
