//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/release"
)

// TestMigrationPods migrates while all nodes are tainted. The policy reports that no node takes the
// pod, until the policy, or else the manager's pod, tolerates the taint.
func TestMigrationPods(t *testing.T) {
	release.Only(t, "TestMigrationWorkload", "TestMigrationPodDoesNotStart", "TestPlacement")
	ctx := t.Context()
	crontab := inGroup(t, "placed.example.com")
	applySample(ctx, t, crontab, crontab.CRDBoth)
	applySample(ctx, t, crontab, crontab.Policy)
	change(ctx, t, crontab, `{"spec":{"migration":{"mode":"OnTrigger"}}}`)
	waitReady(ctx, t, crontab.CRD(), v1alpha1.ReasonSucceeded)
	expect.NoError(t, fleet.Create(ctx, crontab.At(crontab.Old), 5, crontab.Object))

	const manager = "deployment/conversion-operator"
	t.Cleanup(func() {
		run(context.WithoutCancel(ctx), t, "kubectl", "-n", system, "patch", manager, "-p", `{"spec":{"template":{"spec":{"tolerations":null}}}}`)
		run(context.WithoutCancel(ctx), t, "kubectl", "-n", system, "rollout", "status", manager, "--timeout=3m")
	})
	run(ctx, t, "kubectl", "taint", "nodes", "--all", "dedicated=platform:NoSchedule")
	t.Cleanup(func() { run(context.WithoutCancel(ctx), t, "kubectl", "taint", "nodes", "--all", "dedicated-") })
	change(ctx, t, crontab, `{"spec":{"migration":{"trigger":"first"}}}`)
	const cause = "it cannot be scheduled: 0/1 nodes are available: 1 node(s) had untolerated taint"
	waitMessage(ctx, t, crontab.CRD(), v1alpha1.StorageMigratedCondition, v1alpha1.ReasonMigrationPodPending, cause)
	waitMessage(ctx, t, crontab.CRD(), v1alpha1.ReadyCondition, v1alpha1.ReasonMigrationPodPending, cause)
	change(ctx, t, crontab, `{"spec":{"migration":{"workload":{"tolerations":[{"key":"dedicated","operator":"Exists"}]}}}}`)
	waitMessage(ctx, t, crontab.CRD(), v1alpha1.StorageMigratedCondition, v1alpha1.ReasonMigrated, "saw 5")

	change(ctx, t, crontab, `{"spec":{"migration":{"workload":null,"trigger":"second"}}}`)
	waitMessage(ctx, t, crontab.CRD(), v1alpha1.StorageMigratedCondition, v1alpha1.ReasonMigrationPodPending, cause)
	run(ctx, t, "kubectl", "-n", system, "patch", manager, "-p",
		`{"spec":{"template":{"spec":{"tolerations":[{"key":"dedicated","operator":"Exists"}]}}}}`)
	waitMessage(ctx, t, crontab.CRD(), v1alpha1.StorageMigratedCondition, v1alpha1.ReasonMigrated, "saw 5")
}
