//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/docs"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/release"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// many is the number of objects of TestUpgrade.
const many = 1000

// TestUpgrade installs another image and then the first one again, as documented, each time
// during a migration of 1,000 objects, and then the leader and the pod of the migration die. Meanwhile
// objects are written at one version and read at the other: no conversion fails, the migrations continue,
// and nothing is done twice. Both images have the same binary. The test is not parallel, because other
// tests need the first image.
func TestUpgrade(t *testing.T) {
	release.Only(t, "TestPreviousManager", "TestIntegration", "TestStories")
	ctx := t.Context()
	before, now := os.Getenv("E2E_UPGRADE_IMAGE"), os.Getenv("E2E_IMAGE")
	if before == "" {
		t.Fatal("E2E_UPGRADE_IMAGE is not set: run make test-e2e-release")
	}
	player := &docs.Player{Folder: t.TempDir(), Out: t.Output()}
	kustomize(t, filepath.Join(player.Folder, "before"), before)
	kustomize(t, filepath.Join(player.Folder, "now"), now)
	crontab := inGroup(t, "upgrade.example.com")
	applySample(ctx, t, crontab, crontab.Policy)
	applySample(ctx, t, crontab, crontab.CRDBefore)
	waitReady(ctx, t, crontab, v1alpha1.ReasonWaitingForVersion)
	expect.NoError(t, fleet.Create(ctx, crontab.At(crontab.Old), many, crontab.Object))
	applySample(ctx, t, crontab, crontab.CRDBoth)
	waitReady(ctx, t, crontab, v1alpha1.ReasonSucceeded)
	// As long as spec.conversion named the previous ruleset, without the new version, an API server tried to
	// fill its cache of the new version, and continued for a second or two after the change: failures that it
	// counts, and that no client sees.
	waitStored(ctx, t, crontab, getPolicy(ctx, t, crontab).Status.Revision)
	load := startLoad(ctx, t, crontab)

	began := startSlowMigration(ctx, t, crontab, crontab.CRDStorage, crontab.New)
	change := install(ctx, t, player, crontab, "downgrading", before)
	finishMigration(ctx, t, crontab, began, change)
	change.check(ctx, t, crontab)
	checkStored(ctx, t, crontab, many)

	began = startSlowMigration(ctx, t, crontab, crontab.CRDBoth, crontab.Old)
	change = install(ctx, t, player, crontab, "upgrading", now)
	kill(ctx, t, ofPolicy(ctx, t, crontab, names.MigrationComponent))
	failOver(ctx, t)
	finishMigration(ctx, t, crontab, began, change)
	change.check(ctx, t, crontab)
	load.checkAll(t)
	for i := range many {
		expect.NoError(t, readBoth(ctx, crontab, crontab.Object(i)))
	}
}

// kustomize writes a kustomization of config/default with an image and components, and with the short
// propagation delay of these tests.
func kustomize(t *testing.T, folder, image string, components ...string) {
	t.Helper()
	to := func(path string) string {
		relative, err := filepath.Rel(folder, filepath.Join(teller.Dir, path))
		expect.NoError(t, err)
		return relative
	}
	for i, name := range components {
		components[i] = to(filepath.Join("config/components", name))
	}
	image = cmp.Or(image, "localhost/conversion-operator:dev")
	at := strings.LastIndex(image, ":")
	text := fmt.Sprintf(`resources: [%s]
components: [%s]
images: [{name: localhost/conversion-operator, newName: %s, newTag: %q}]
patches:
- target: {kind: Deployment, name: conversion-operator}
  patch: '[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--propagation-delay=%s"}]'
`, to("config/default"), strings.Join(components, ", "), image[:at], image[at+1:], scenarios.PropagationDelay)
	expect.NoError(t, os.MkdirAll(folder, 0o700))
	expect.NoError(t, os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600))
}

// imageChange is the state before another image was installed.
type imageChange struct {
	image      string
	ruleset    string
	deployment int64
	crd        int64
}

// install plays a scene of the page, and waits until a manager with the image leads and has updated
// the converter's Deployment.
func install(ctx context.Context, t *testing.T, player *docs.Player, crontab scenarios.CronTab, scene, image string) imageChange {
	t.Helper()
	change := imageChange{
		image: image, ruleset: getPolicy(ctx, t, crontab).Status.Revision,
		deployment: converterDeployment(ctx, t, crontab).Generation, crd: getCRD(ctx, t, crontab).Generation,
	}
	play(t, player, scene)
	expect.Eventually(t, "a manager of "+image+" leads", func() (bool, string) {
		pod := leaderPod(ctx, t, getLease(ctx, t))
		return pod != nil && pod.Spec.Containers[0].Image == image, fmt.Sprint(getLease(ctx, t).Spec.HolderIdentity)
	})
	expect.Eventually(t, "the converter is of "+image, func() (bool, string) {
		found := converterDeployment(ctx, t, crontab).Spec.Template.Spec.Containers[0].Image
		return found == image, found
	})
	return change
}

// check counts the writes of both managers: one of the Deployment, for the new image.
func (c imageChange) check(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	t.Helper()
	expect.Equal(t, "ruleset after "+c.image, c.ruleset, getPolicy(ctx, t, crontab).Status.Revision)
	expect.Equal(t, "changes of the converter's Deployment for "+c.image, 1, converterDeployment(ctx, t, crontab).Generation-c.deployment)
	expect.Equal(t, "changes of the CustomResourceDefinition for "+c.image, 0, getCRD(ctx, t, crontab).Generation-c.crd)
}

func converterDeployment(ctx context.Context, t *testing.T, crontab scenarios.CronTab) *appsv1.Deployment {
	t.Helper()
	return get(ctx, t, names.Child(crontab.CRD()), &appsv1.Deployment{})
}

// startSlowMigration changes the storage version, and waits for the first writes of the migration,
// which would take minutes, so that another image is installed during it.
func startSlowMigration(ctx context.Context, t *testing.T, crontab scenarios.CronTab, file, storage string) contract.Record {
	t.Helper()
	change(ctx, t, crontab, `{"spec":{"migration":{"maxWritesPerSecond":5}}}`)
	applySample(ctx, t, crontab, file)
	var record contract.Record
	expect.Eventually(t, "a migration to "+storage+" has begun", func() (bool, string) {
		last := getPolicy(ctx, t, crontab).Status.Migration
		if last == nil || last.StorageVersion != storage {
			return false, "no migration"
		}
		record = getRecord(ctx, t, crontab, last.Run)
		return record.State == contract.StateRunning && record.Done() > 0, string(record.State)
	})
	return record
}

// getRecord reads the record of a run; the zero Record if there is none yet.
func getRecord(ctx context.Context, t *testing.T, crontab scenarios.CronTab, run string) (record contract.Record) {
	t.Helper()
	configMap := &corev1.ConfigMap{}
	err := cluster.Get(ctx, client.ObjectKey{Namespace: system, Name: names.Run(crontab.CRD(), run)}, configMap)
	expect.NoError(t, client.IgnoreNotFound(err))
	if text, found := configMap.Data[contract.RecordKey]; found {
		record, err = contract.ParseRecord([]byte(text))
		expect.NoError(t, err)
	}
	return record
}

// finishMigration removes the limit of a migration, and compares its end with its beginning, before
// another image was installed.
func finishMigration(ctx context.Context, t *testing.T, crontab scenarios.CronTab, began contract.Record, installed imageChange) {
	t.Helper()
	if record := getRecord(ctx, t, crontab, began.Run); record.Finished() {
		t.Fatalf("the migration was over before %s was installed", installed.image)
	}
	change(ctx, t, crontab, `{"spec":{"migration":{"maxWritesPerSecond":null}}}`)
	waitReady(ctx, t, crontab, v1alpha1.ReasonSucceeded)
	ended := getPolicy(ctx, t, crontab).Status.Migration
	if ended.State != v1alpha1.MigrationSucceeded || ended.Run != began.Run {
		t.Errorf("the last migration is %s and %s, want %s to have succeeded", ended.Run, ended.State, began.Run)
	}
	if ended.Total != many || ended.Rewritten+ended.Unchanged != many || ended.Failed != 0 {
		t.Errorf("the migration counted %d rewritten, %d unchanged and %d failed of %d, want %d in all",
			ended.Rewritten, ended.Unchanged, ended.Failed, ended.Total, many)
	}
	record := getRecord(ctx, t, crontab, began.Run)
	if !record.StartTime.Equal(began.StartTime) || record.Barrier != began.Barrier || record.Repeats != 0 {
		t.Errorf("the migration started over: its record is of %s, barrier %s, and was of %s, barrier %s",
			record.StartTime, record.Barrier, began.StartTime, began.Barrier)
	}
}

// mostWithoutLeader bounds the time without a leader after the leader died.
const mostWithoutLeader = 20 * time.Second

// failOver kills the leading manager without a chance to release its lease, and compares the lease
// before and after.
func failOver(ctx context.Context, t *testing.T) {
	t.Helper()
	last := getLease(ctx, t)
	leader := leaderPod(ctx, t, last)
	if leader == nil {
		t.Fatalf("the lease is of %v, which is not a pod's", last.Spec.HolderIdentity)
	}
	send(ctx, t, leader, "manager", syscall.SIGKILL)
	var next *coordinationv1.Lease
	expect.Eventually(t, "another leads", func() (bool, string) {
		next = getLease(ctx, t)
		holder := ptr.Deref(next.Spec.HolderIdentity, "")
		if holder == *last.Spec.HolderIdentity {
			last = next // releasing it would clear the name
		}
		return holder != "" && holder != *last.Spec.HolderIdentity, fmt.Sprint(next.Spec)
	})
	without := next.Spec.AcquireTime.Sub(last.Spec.RenewTime.Time)
	t.Logf("%s renewed its lease at %s, and %s took it %s later",
		*last.Spec.HolderIdentity, last.Spec.RenewTime, *next.Spec.HolderIdentity, without)
	if without >= mostWithoutLeader {
		t.Errorf("no one led for %s", without)
	}
}

func getLease(ctx context.Context, t *testing.T) *coordinationv1.Lease {
	t.Helper()
	return get(ctx, t, "conversion-operator", &coordinationv1.Lease{})
}

// leaderPod returns the pod that holds a lease, or nil.
func leaderPod(ctx context.Context, t *testing.T, lease *coordinationv1.Lease) *corev1.Pod {
	t.Helper()
	name, _, _ := strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_")
	for _, pod := range managers(ctx, t) {
		if pod.Name == name {
			return &pod
		}
	}
	return nil
}
