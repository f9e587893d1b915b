//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/release"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// convertedInGroup returns a converting CronTab with ten objects.
func convertedInGroup(ctx context.Context, t *testing.T, group string) scenarios.CronTab {
	t.Helper()
	crontab := inGroup(t, group)
	applySample(ctx, t, crontab, crontab.CRDBoth)
	applySample(ctx, t, crontab, crontab.Policy)
	waitReady(ctx, t, crontab.CRD(), v1alpha1.ReasonSucceeded)
	expect.NoError(t, fleet.Create(ctx, crontab.At(crontab.Old), 10, crontab.Object))
	return crontab
}

// TestUninstallOperator follows the documentation while a policy cannot be deleted: it is
// abandoned, and objects are converted without policy and operator. After a new installation, the
// operator adopts the same pods. No read fails at any time.
func TestUninstallOperator(t *testing.T) {
	release.Only(t, "TestUninstallGuard", "TestDeletedPolicy")
	ctx := t.Context()
	crontab := convertedInGroup(ctx, t, "uninstalled.example.com")
	before, generation := uids(ctx, t, crontab), getCRD(ctx, t, crontab.CRD()).Generation
	reader := fleet.Read(ctx, crontab.At(crontab.New), crontab.Object(0).GetName(), func(*unstructured.Unstructured) error { return nil })

	player := newPlayer(t, t.TempDir())
	player.Names = strings.NewReplacer("crontabs.example.com", crontab.CRD())
	play(t, player, "blocked")
	waitUntilNoManager(ctx, t)
	checkBothVersions(ctx, t, crontab)

	reinstall(ctx, t)
	applySample(ctx, t, crontab, crontab.Policy)
	waitReady(ctx, t, crontab.CRD(), v1alpha1.ReasonSucceeded)
	if diff := cmp.Diff(before, uids(ctx, t, crontab)); diff != "" {
		t.Errorf("other pods took over (-before +after):\n%s", diff)
	}
	if got := getCRD(ctx, t, crontab.CRD()).Generation; got != generation {
		t.Errorf("the CustomResourceDefinition has generation %d, want %d: no write", got, generation)
	}
	if reads, err := reader.Stop(); err != nil || reads == 0 {
		t.Errorf("%d reads, and then: %v", reads, err)
	}
}

// TestOrphansAtStart: policy and CRD were deleted while no operator ran. The next operator deletes
// everything that belonged to them.
func TestOrphansAtStart(t *testing.T) {
	release.Only(t, "TestOrphansAreDeleted")
	ctx := t.Context()
	crontab := convertedInGroup(ctx, t, "orphans.example.com")
	run(ctx, t, "kubectl", "-n", system, "scale", "deployment", "conversion-operator", "--replicas=0")
	waitUntilNoManager(ctx, t)
	run(ctx, t, "kubectl", "delete", "conversionpolicy", crontab.CRD(), "--wait=false")
	run(ctx, t, "kubectl", "patch", "conversionpolicy", crontab.CRD(), "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	run(ctx, t, "kubectl", "delete", "crd", crontab.CRD(), "--timeout=1m")
	if len(uids(ctx, t, crontab)) == 0 {
		t.Fatal("the converter went with the policy")
	}
	run(ctx, t, "kubectl", "-n", system, "scale", "deployment", "conversion-operator", "--replicas=2")
	expect.Eventually(t, "nothing of the converter is left", func() (bool, string) {
		out, err := teller.Run(ctx, "kubectl", "-n", system, "get", "deployments,services,secrets,configmaps,pods", "-o", "name",
			"-l", names.InstanceLabel+"="+names.Child(crontab.CRD()))
		return err == nil && out == "", out
	})
}

func waitUntilNoManager(ctx context.Context, t *testing.T) {
	t.Helper()
	expect.Eventually(t, "the manager is gone", func() (bool, string) {
		left := pods(ctx, t, client.MatchingLabels{names.ComponentLabel: "manager"})
		return len(left) == 0, fmt.Sprintf("%d pods", len(left))
	})
}

// TestDeleteNamespace deletes the operator and every converter. After a new installation, every
// object can be read again.
func TestDeleteNamespace(t *testing.T) {
	release.Only(t, "TestStories", "TestLostAuthority")
	ctx := t.Context()
	crontab := convertedInGroup(ctx, t, "namespace.example.com")
	checkBothVersions(ctx, t, crontab)
	run(ctx, t, "kubectl", "delete", "namespace", system, "--timeout=3m")
	if err := bothVersions(ctx, crontab); err == nil {
		t.Error("objects convert without a converter")
	}
	reinstall(ctx, t)
	expect.Eventually(t, "objects convert again", func() (bool, string) {
		err := bothVersions(ctx, crontab)
		return err == nil, fmt.Sprint(err)
	})
	waitReady(ctx, t, crontab.CRD(), v1alpha1.ReasonSucceeded)
}

// reinstall returns when the previous managers are gone.
func reinstall(ctx context.Context, t *testing.T) {
	t.Helper()
	expect.NoError(t, scenarios.Install(ctx, teller))
	waitTwoManagers(ctx, t)
}

// restartManagers returns when the previous managers are gone.
func restartManagers(ctx context.Context, t *testing.T) {
	t.Helper()
	run(ctx, t, "kubectl", "-n", system, "rollout", "restart", "deployment/conversion-operator")
	waitRolledOut(ctx, t)
	waitTwoManagers(ctx, t)
}

// waitRolledOut waits until all managers are of the current Deployment.
func waitRolledOut(ctx context.Context, t *testing.T) {
	t.Helper()
	run(ctx, t, "kubectl", "-n", system, "rollout", "status", "deployment/conversion-operator", "--timeout=2m")
}

func waitTwoManagers(ctx context.Context, t *testing.T) {
	t.Helper()
	expect.Eventually(t, "two managers are left", func() (bool, string) {
		left := pods(ctx, t, client.MatchingLabels{names.ComponentLabel: "manager"})
		return len(left) == 2, fmt.Sprintf("%d pods", len(left))
	})
}

func run(ctx context.Context, t *testing.T, words ...string) {
	t.Helper()
	if out, err := teller.Run(ctx, words...); err != nil {
		t.Fatalf("%v: %v\n%s", words, err, out)
	}
}

// uids returns the UIDs of a policy's converter pods.
func uids(ctx context.Context, t *testing.T, crontab scenarios.CronTab) map[types.UID]bool {
	t.Helper()
	found := map[types.UID]bool{}
	for _, pod := range converters(ctx, t, crontab) {
		found[pod.UID] = true
	}
	return found
}
