//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/docs"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/release"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// TestUpgrade installs another image and then the first one again, as documented, each time
// during a migration of 1,000 objects, and then the leader dies. Meanwhile objects are written at
// one version and read at the other: no conversion fails, the migrations continue, and nothing is
// done twice. Both images have the same binary. The test is not parallel, because other tests need
// the first image.
func TestUpgrade(t *testing.T) {
	release.Only(t, "TestPreviousManager")
	ctx := t.Context()
	player, before, now := installations(t)
	crontab := inGroup(t, "upgrade.example.com")
	prepareFleet(ctx, t, crontab)
	waitForgotten(ctx, t, crontab)
	all := allConvert(ctx, t, crontab)
	load := startLoad(ctx, crontab)

	run := startSlowMigration(ctx, t, crontab, crontab.CRDStorage, crontab.New)
	change := install(ctx, t, player, crontab, "downgrading", before)
	finishMigration(ctx, t, crontab, run, change)
	change.check(ctx, t, crontab)

	run = startSlowMigration(ctx, t, crontab, crontab.CRDBoth, crontab.Old)
	change = install(ctx, t, player, crontab, "upgrading", now)
	failOver(ctx, t)
	finishMigration(ctx, t, crontab, run, change)
	change.check(ctx, t, crontab)

	load.check(t)
	all()
}

// waitForgotten waits until no converter serves the previous ruleset without the new version. As
// long as spec.conversion named that, an API server tried to fill its cache of the new version, and
// continued for a second or two after the change: failures that it counts, and that no client sees.
func waitForgotten(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	t.Helper()
	storeOnly(ctx, t, crontab, getPolicy(ctx, t, crontab.CRD()).Status.Converter.Revision)
}

// installations returns the folder of a kustomization of each image, as documented, and both images.
func installations(t *testing.T) (player *docs.Player, before, now string) {
	t.Helper()
	before, now = os.Getenv("E2E_UPGRADE_IMAGE"), os.Getenv("E2E_IMAGE")
	if before == "" || now == "" {
		t.Fatal("E2E_UPGRADE_IMAGE or E2E_IMAGE is not set: run make test-e2e-release")
	}
	folder := t.TempDir()
	kustomize(t, filepath.Join(folder, "before"), before)
	kustomize(t, filepath.Join(folder, "now"), now)
	return &docs.Player{Folder: folder, Out: t.Output()}, before, now
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
	at := strings.LastIndex(image, ":")
	text := fmt.Sprintf(`resources: [%s]
components: [%s]
images: [{name: localhost/conversion-operator, newName: %s, newTag: %q}]
patches:
- target: {kind: Deployment, name: conversion-operator}
  patch: '[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--propagation-delay=5s"}]'
`, to("config/default"), strings.Join(components, ", "), image[:at], image[at+1:])
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
		image: image, ruleset: getPolicy(ctx, t, crontab.CRD()).Status.Converter.Revision,
		deployment: converterDeployment(ctx, t, crontab).Generation, crd: getCRD(ctx, t, crontab.CRD()).Generation,
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
	if hash := getPolicy(ctx, t, crontab.CRD()).Status.Converter.Revision; hash != c.ruleset {
		t.Errorf("the ruleset is %s, and was %s before %s", hash, c.ruleset, c.image)
	}
	if got := converterDeployment(ctx, t, crontab).Generation - c.deployment; got != 1 {
		t.Errorf("the converter's Deployment was changed %d times for %s, want once", got, c.image)
	}
	if got := getCRD(ctx, t, crontab.CRD()).Generation - c.crd; got != 0 {
		t.Errorf("the CustomResourceDefinition was changed %d times for %s, want never", got, c.image)
	}
}

func converterDeployment(ctx context.Context, t *testing.T, crontab scenarios.CronTab) *appsv1.Deployment {
	t.Helper()
	deployment := &appsv1.Deployment{}
	expect.NoError(t, cluster.Get(ctx, client.ObjectKey{Namespace: system, Name: names.Child(crontab.CRD())}, deployment))
	return deployment
}

// startSlowMigration changes the storage version, and waits for the first writes of the migration,
// which would take minutes, so that another image is installed during it.
func startSlowMigration(ctx context.Context, t *testing.T, crontab scenarios.CronTab, file, storage string) contract.Record {
	t.Helper()
	change(ctx, t, crontab, `{"spec":{"migration":{"maxWritesPerSecond":5}}}`)
	applySample(ctx, t, crontab, file)
	var record contract.Record
	expect.Eventually(t, "a migration to "+storage+" has begun", func() (bool, string) {
		last := getPolicy(ctx, t, crontab.CRD()).Status.Migration
		if last == nil || last.StorageVersion != storage {
			return false, "no migration"
		}
		record = getRecord(ctx, t, crontab, last.Run)
		return record.State == contract.StateRunning && record.Done() > 0, string(record.State)
	})
	return record
}

// getRecord reads the record of a run; the zero Record if there is none yet.
func getRecord(ctx context.Context, t *testing.T, crontab scenarios.CronTab, run string) contract.Record {
	t.Helper()
	configMap := &corev1.ConfigMap{}
	err := cluster.Get(ctx, client.ObjectKey{Namespace: system, Name: names.Run(crontab.CRD(), run)}, configMap)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if record := recordIn(t, configMap); record != nil {
		return *record
	}
	return contract.Record{}
}

// finishMigration removes the limit of a migration, and compares its end with its beginning, before
// another image was installed.
func finishMigration(ctx context.Context, t *testing.T, crontab scenarios.CronTab, began contract.Record, installed imageChange) {
	t.Helper()
	if record := getRecord(ctx, t, crontab, began.Run); record.Finished() {
		t.Fatalf("the migration was over before %s was installed", installed.image)
	}
	change(ctx, t, crontab, `{"spec":{"migration":{"maxWritesPerSecond":null}}}`)
	waitReady(ctx, t, crontab.CRD(), v1alpha1.ReasonSucceeded)
	ended := getPolicy(ctx, t, crontab.CRD()).Status.Migration
	if ended.State != v1alpha1.MigrationSucceeded || ended.Run != began.Run {
		t.Errorf("the last migration is %s and %s, want %s to have succeeded", ended.Run, ended.State, began.Run)
	}
	if ended.Total != fleetSize || ended.Rewritten+ended.Current != fleetSize || ended.Failed != 0 {
		t.Errorf("the migration counted %d rewritten, %d current and %d failed of %d, want %d in all",
			ended.Rewritten, ended.Current, ended.Failed, ended.Total, fleetSize)
	}
	record := getRecord(ctx, t, crontab, began.Run)
	if !record.StartTime.Equal(began.StartTime) || record.Barrier != began.Barrier || record.Repeats != 0 {
		t.Errorf("the migration started over: its record is of %s, barrier %s, and was of %s, barrier %s",
			record.StartTime, record.Barrier, began.StartTime, began.Barrier)
	}
}

func getLease(ctx context.Context, t *testing.T) *coordinationv1.Lease {
	t.Helper()
	lease := &coordinationv1.Lease{}
	expect.NoError(t, cluster.Get(ctx, client.ObjectKey{Namespace: system, Name: "conversion-operator"}, lease))
	return lease
}

// leaderPod returns the pod that holds a lease, or nil.
func leaderPod(ctx context.Context, t *testing.T, lease *coordinationv1.Lease) *corev1.Pod {
	t.Helper()
	if lease.Spec.HolderIdentity == nil {
		return nil
	}
	name, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	for _, pod := range pods(ctx, t, client.MatchingLabels{names.ComponentLabel: "manager"}) {
		if pod.Name == name {
			return &pod
		}
	}
	return nil
}
