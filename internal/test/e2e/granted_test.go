//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"regexp"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/release"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// TestGrantedRights: if an administrator grants rights instead of the manager, the policy reports
// each missing right with the commands that grant it, and continues after they are run: to read a
// sample, and to migrate. The manager creates and deletes no role.
func TestGrantedRights(t *testing.T) {
	release.Only(t, "TestGrants")
	ctx := t.Context()
	crontab := inGroup(t, "granted.example.com")
	granted := []string{names.ReadRights(crontab.CRD()), names.MigrationRights(crontab.CRD())}
	grantNothing(ctx, t, granted)
	applySample(ctx, t, crontab, crontab.Policy)
	applySample(ctx, t, crontab, crontab.CRDBefore)
	waitReady(ctx, t, crontab.CRD(), v1alpha1.ReasonWaitingForVersion)
	expect.NoError(t, fleet.Create(ctx, crontab.At(crontab.Old), 10, crontab.Object))
	applySample(ctx, t, crontab, crontab.CRDBoth)
	grantAsAsked(ctx, t, crontab, v1alpha1.ConversionVerifiedCondition)
	waitReady(ctx, t, crontab.CRD(), v1alpha1.ReasonSucceeded)

	applySample(ctx, t, crontab, crontab.CRDStorage)
	grantAsAsked(ctx, t, crontab, v1alpha1.StorageMigratedCondition)
	expect.Eventually(t, "all objects are migrated", func() (bool, string) {
		status := getPolicy(ctx, t, crontab.CRD()).Status
		return status.Migration != nil && status.Migration.State == v1alpha1.MigrationSucceeded && status.MigrationEvidence != nil, fmt.Sprint(status.Conditions)
	})
	waitReady(ctx, t, crontab.CRD(), v1alpha1.ReasonSucceeded)
	if last := getPolicy(ctx, t, crontab.CRD()).Status.Migration; last.Rewritten+last.Current != 10 || last.Failed != 0 {
		t.Errorf("the migration counted %d rewritten, %d current and %d failed, want 10 in all", last.Rewritten, last.Current, last.Failed)
	}
	if stored := getCRD(ctx, t, crontab.CRD()).Status.StoredVersions; fmt.Sprint(stored) != "["+crontab.New+"]" {
		t.Errorf("status.storedVersions is %v, want %s only", stored, crontab.New)
	}
	checkBothVersions(ctx, t, crontab)
	for _, name := range granted {
		run(ctx, t, "kubectl", "get", "clusterrole/"+name, "clusterrolebinding/"+name)
	}
	made, err := teller.Run(ctx, "kubectl", "get", "clusterroles,clusterrolebindings", "-o", "name", "-l", names.ManagedByLabel+"="+names.ManagedBy)
	if err != nil || made != "" {
		t.Errorf("the manager has made roles: %v\n%s", err, made)
	}
}

// grantNothing changes the installation as documented to a manager that may grant nothing, until
// the test ends, and then deletes the rights granted by hand.
func grantNothing(ctx context.Context, t *testing.T, granted []string) {
	t.Helper()
	folder := t.TempDir()
	kustomize(t, folder, cmp.Or(os.Getenv("E2E_IMAGE"), "localhost/conversion-operator:dev"), "granted-rights")
	t.Cleanup(func() {
		ctx := context.WithoutCancel(ctx)
		for _, name := range append(granted, "conversion-operator-definitions") {
			run(ctx, t, "kubectl", "delete", "--ignore-not-found", "clusterrole/"+name, "clusterrolebinding/"+name)
		}
		reinstall(ctx, t)
		restartManagers(ctx, t) // the previous ones look only after a minute whether they may grant again
	})
	play(t, newPlayer(t, folder), "granting none")
}

// grantCommands matches the commands in the message of a condition.
var grantCommands = regexp.MustCompile(`kubectl create clusterrole [^;]+; kubectl create clusterrolebinding \S+ --clusterrole=\S+ --serviceaccount=[a-z0-9:-]+`)

// grantAsAsked waits until a condition reports a missing right, and runs the commands in it. The
// manager checks again after half a minute, or after any change, such as a label on the policy.
func grantAsAsked(ctx context.Context, t *testing.T, crontab scenarios.CronTab, condition string) {
	t.Helper()
	waitMessage(ctx, t, crontab.CRD(), condition, v1alpha1.ReasonRightsNotGranted, "run: kubectl create clusterrole ")
	message := apimeta.FindStatusCondition(getPolicy(ctx, t, crontab.CRD()).Status.Conditions, condition).Message
	commands := grantCommands.FindString(message)
	if commands == "" {
		t.Fatalf("%s has no commands: %s", condition, message)
	}
	run(ctx, t, "bash", "-euc", commands)
	run(ctx, t, "kubectl", "label", "conversionpolicy", crontab.CRD(), "--overwrite", "granted="+condition)
}
