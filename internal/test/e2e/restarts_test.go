//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/release"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

type unstructuredObject = unstructured.Unstructured

const fleetSize = 1000

// TestRestarts kills the manager, a converter pod and the migration pod during a migration of 1,000
// objects, each in its own run, and all at the same time. Nothing is lost, and the result is the
// same.
func TestRestarts(t *testing.T) {
	release.Only(t, "TestIntegration", "TestLostAuthority")
	cases := map[string]func(context.Context, *testing.T, scenarios.CronTab){
		"manager":   killManagers,
		"converter": killConverter,
		"migration": killMigration,
		"all": func(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
			killMigration(ctx, t, crontab)
			killManagers(ctx, t, crontab)
			killConverter(ctx, t, crontab)
		},
	}
	for name, kill := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			migrateThroughRestart(t, inGroup(t, name+".restarts.example.com"), kill)
		})
	}
}

// prepareFleet creates objects at the old version of a CronTab, and adds the new version with its
// conversion.
func prepareFleet(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	t.Helper()
	applySample(ctx, t, crontab, crontab.Policy)
	applySample(ctx, t, crontab, crontab.CRDBefore)
	waitReady(ctx, t, crontab.CRD(), v1alpha1.ReasonWaitingForVersion)
	expect.NoError(t, fleet.Create(ctx, crontab.At(crontab.Old), fleetSize, crontab.Object))
	applySample(ctx, t, crontab, crontab.CRDBoth)
	waitReady(ctx, t, crontab.CRD(), v1alpha1.ReasonSucceeded)
}

func migrateThroughRestart(t *testing.T, crontab scenarios.CronTab, kill func(context.Context, *testing.T, scenarios.CronTab)) {
	ctx := t.Context()
	prepareFleet(ctx, t, crontab)
	change(ctx, t, crontab, `{"spec":{"migration":{"pace":"Fast"}}}`) // four of them share a node

	applySample(ctx, t, crontab, crontab.CRDStorage)
	expect.Eventually(t, "the migration is half done", func() (bool, string) {
		record := findRecord(ctx, t, crontab)
		if record == nil {
			return false, "no record"
		}
		if record.Finished() {
			t.Fatal("the migration was over before anything was killed")
		}
		return record.Done() > 0, string(record.State)
	})
	kill(ctx, t, crontab)

	expect.Eventually(t, "the migration has succeeded", func() (bool, string) {
		migration := getPolicy(ctx, t, crontab.CRD()).Status.Migration
		if migration == nil {
			return false, "no migration"
		}
		return migration.State == v1alpha1.MigrationSucceeded, string(migration.State) + " " + migration.Progress + " " + migration.Message
	})
	waitReady(ctx, t, crontab.CRD(), v1alpha1.ReasonSucceeded)
	checkMigrated(ctx, t, crontab)
}

// checkMigrated checks that every object exists with its value, is stored in the new version, and
// is counted in the record.
func checkMigrated(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	t.Helper()
	last := getPolicy(ctx, t, crontab.CRD()).Status.Migration
	if last.Total != fleetSize || last.Rewritten+last.Current != fleetSize || last.Gone != 0 || last.Failed != 0 {
		t.Errorf("the migration counted %d rewritten, %d current, %d gone and %d failed of %d, want %d in all",
			last.Rewritten, last.Current, last.Gone, last.Failed, last.Total, fleetSize)
	}
	if stored := getCRD(ctx, t, crontab.CRD()).Status.StoredVersions; len(stored) != 1 || stored[0] != crontab.New {
		t.Errorf("status.storedVersions is %v, want %s only", stored, crontab.New)
	}
	stored, err := scenarios.ReadStored(ctx, crontab.Group, "crontabs")
	expect.NoError(t, err)
	if stored != nil && (!stored.Only(crontab.Group+"/"+crontab.New) || stored.Versions[crontab.Group+"/"+crontab.New] != fleetSize) {
		t.Errorf("etcd holds %s, want %d at %s", stored, fleetSize, crontab.New)
	}
	items, err := fleet.List(ctx, crontab.At(crontab.Old))
	expect.NoError(t, err)
	values := map[string]any{}
	for _, item := range items {
		values[item.GetName()] = item.Object["hostPort"]
	}
	for i := range fleetSize {
		want := crontab.Object(i)
		if values[want.GetName()] != want.Object["hostPort"] {
			t.Fatalf("%s has %v at %s, want %v", want.GetName(), values[want.GetName()], crontab.Old, want.Object["hostPort"])
		}
	}
}

// findRecord reads the record of the migration Job without the manager.
func findRecord(ctx context.Context, t *testing.T, crontab scenarios.CronTab) *contract.Record {
	t.Helper()
	list := &corev1.ConfigMapList{}
	err := cluster.List(ctx, list, client.InNamespace(system), client.HasLabels{names.RunLabel},
		client.MatchingLabels{names.InstanceLabel: names.Child(crontab.CRD())})
	expect.NoError(t, err)
	for i := range list.Items {
		if record := recordIn(t, &list.Items[i]); record != nil {
			return record
		}
	}
	return nil
}

// recordIn returns the record in a ConfigMap, or nil.
func recordIn(t *testing.T, configMap *corev1.ConfigMap) *contract.Record {
	t.Helper()
	text, found := configMap.Data[contract.RecordKey]
	if !found {
		return nil
	}
	record, err := contract.ParseRecord([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return &record
}

func killManagers(ctx context.Context, t *testing.T, _ scenarios.CronTab) {
	kill(ctx, t, pods(ctx, t, client.MatchingLabels{names.ComponentLabel: "manager"}))
}

func killConverter(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	all := pods(ctx, t, client.MatchingLabels{
		names.ComponentLabel: names.ConverterComponent, names.InstanceLabel: names.Child(crontab.CRD())})
	kill(ctx, t, all[:1])
}

func killMigration(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	kill(ctx, t, pods(ctx, t, client.MatchingLabels{
		names.ComponentLabel: names.MigrationComponent, names.InstanceLabel: names.Child(crontab.CRD())}))
}

// kill deletes pods without a grace period, as when a node is lost.
func kill(ctx context.Context, t *testing.T, victims []corev1.Pod) {
	t.Helper()
	if len(victims) == 0 {
		t.Fatal("there is nothing to kill")
	}
	for i := range victims {
		err := cluster.Delete(ctx, &victims[i], client.GracePeriodSeconds(0))
		if client.IgnoreNotFound(err) != nil { // tests that run beside this one kill managers too
			t.Fatal(err)
		}
	}
}
