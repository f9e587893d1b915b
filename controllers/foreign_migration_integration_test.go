//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/others"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// TestForeignMigration: a migration of the same objects by Kubernetes delays ours, before and
// after it started. A migration of other objects does not.
func TestForeignMigration(t *testing.T) {
	const group = "foreign.runs.example.com"
	name := "crontabs." + group
	active := activate(t, group, unchanged)
	waitUntilReadEnds(t, active.Name)
	createMigration(t, "other-foreign-runs", "widgets."+group)
	theirs := createMigration(t, "foreign-runs", name)
	patchPolicy(t, name, `{"spec":{"migration":{"trigger":"first"}}}`)
	condition := waitFor(t, name, v1alpha1.StorageMigratedCondition, metav1.ConditionFalse, v1alpha1.ReasonForeignStorageMigration)
	if !strings.Contains(condition.Message, "storageversionmigrations.storagemigration.k8s.io/foreign-runs;") {
		t.Errorf("the message does not name the migration: %s", condition.Message)
	}
	endMigration(t, theirs, "Failed")
	touch(t, name, 1)
	waitForJob(t, name, "at work", goesOn)

	again := createMigration(t, "foreign-runs-again", name)
	touch(t, name, 2)
	waitForJob(t, name, "suspended", func(job *batchv1.Job) bool { return !goesOn(job) })
	expect.NoError(t, cluster.Delete(t.Context(), again))
	touch(t, name, 3)
	waitForJob(t, name, "at work again", goesOn)
}

// TestForeignPruning: a foreign removal from status.storedVersions is reported, and is no
// migration evidence.
func TestForeignPruning(t *testing.T) {
	active := activate(t, "pruned.runs.example.com", unchanged)
	waitUntilReadEnds(t, active.Name)
	for i, stored := range []string{`["v1beta1","v1"]`, `["v1"]`} {
		patch := client.RawPatch(mergePatch, fmt.Appendf(nil, `{"status":{"storedVersions":%s}}`, stored))
		expect.NoError(t, cluster.Status().Patch(t.Context(), active.DeepCopy(), patch, client.FieldOwner("somebody")))
		touch(t, active.Name, i)
		expect.Eventually(t, "it is seen", func() (bool, string) {
			seen, err := json.Marshal(getPolicy(t, active.Name).Status.CRD.StoredVersions)
			return string(seen) == stored, fmt.Sprint(string(seen), err)
		})
	}
	condition := waitFor(t, active.Name, v1alpha1.StorageMigratedCondition, metav1.ConditionUnknown, v1alpha1.ReasonStoredVersionsUntrusted)
	if !strings.Contains(condition.Message, "spec.migration.trigger") {
		t.Errorf("the message does not say what to do: %s", condition.Message)
	}
	checkEvents(t, active.Name, v1alpha1.ReasonPrunedByOthers)
	patchPolicy(t, active.Name, `{"spec":{"migration":{"mode":"Automatic"}}}`)
	waitForJob(t, active.Name, "at work", goesOn)
}

// createMigration starts a migration as kube-controller-manager would, which does not run here.
func createMigration(t *testing.T, name, crd string) *unstructured.Unstructured {
	t.Helper()
	resource, group, _ := strings.Cut(crd, ".")
	mapping, err := cluster.RESTMapper().RESTMapping(others.Kinds[0])
	expect.NoError(t, err)
	object := testenv.StorageVersionMigration(mapping.GroupVersionKind.GroupVersion(), name, schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource})
	expect.NoError(t, cluster.Create(t.Context(), object))
	t.Cleanup(func() { _ = cluster.Delete(context.WithoutCancel(t.Context()), object) })
	endMigration(t, object, "Running")
	return object
}

// endMigration sets the state of a migration.
func endMigration(t *testing.T, object *unstructured.Unstructured, state string) {
	t.Helper()
	base := object.DeepCopy()
	expect.NoError(t, unstructured.SetNestedMap(object.Object, testenv.MigrationStatus(state), "status"))
	expect.NoError(t, cluster.Status().Patch(t.Context(), object, client.MergeFrom(base)))
}
