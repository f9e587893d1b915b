//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/others"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// TestForeignMigration: a migration of the same objects by Kubernetes delays ours. A migration of other
// objects does not.
func TestForeignMigration(t *testing.T) {
	const group = "foreign.runs.example.com"
	name := "crontabs." + group
	active := activate(t, group, unchanged)
	waitUntilReadEnds(t, active.Name)
	createMigration(t, "other-foreign-runs", "widgets."+group)
	theirs := createMigration(t, "foreign-runs", name)
	patchPolicy(t, name, `{"spec":{"migration":{"trigger":"first"}}}`)
	condition := waitFor(t, name, v1alpha1.StorageMigratedCondition, metav1.ConditionFalse, v1alpha1.ReasonForeignStorageMigration)
	expect.Contains(t, "the message", condition.Message, "storageversionmigrations.storagemigration.k8s.io/foreign-runs;")
	endMigration(t, theirs, "Failed")
	touch(t, name, 1)
	waitForRun(t, name)
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

// migrating activates a CustomResourceDefinition whose objects may be stored at its old version,
// and triggers a migration.
func migrating(t *testing.T, group string) string {
	t.Helper()
	active := activate(t, group, unchanged)
	waitUntilReadEnds(t, active.Name)
	status := client.RawPatch(mergePatch, []byte(`{"status":{"storedVersions":["v1beta1","v1"]}}`))
	expect.NoError(t, cluster.Status().Patch(t.Context(), active, status))
	patchPolicy(t, active.Name, `{"spec":{"migration":{"trigger":"first"}}}`)
	waitFor(t, active.Name, v1alpha1.StorageMigratedCondition, metav1.ConditionFalse, v1alpha1.ReasonMigrating)
	return active.Name
}

// waitForRun waits until the Job of the latest run is not suspended.
func waitForRun(t *testing.T, policy string) {
	t.Helper()
	expect.Eventually(t, "the Job is at work", func() (bool, string) {
		run := getPolicy(t, policy).Status.Migration
		if run == nil {
			return false, "no run"
		}
		job := &batchv1.Job{}
		err := cluster.Get(t.Context(), client.ObjectKey{Namespace: system, Name: names.Run(policy, run.Run)}, job)
		return err == nil && !ptr.Deref(job.Spec.Suspend, false) && job.DeletionTimestamp == nil, fmt.Sprint(err, job.Spec.Suspend, job.DeletionTimestamp)
	})
}
