//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/others"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// TestForeignMigration: a migration of the same objects by Kubernetes delays ours. A migration of other
// objects does not.
func TestForeignMigration(t *testing.T) {
	t.Parallel()
	const group = "foreign.runs.example.com"
	name := activate(t, group, shared).Name
	waitUntilReadEnds(t, name)
	createMigration(t, "other-foreign-runs", "widgets."+group)
	theirs := createMigration(t, "foreign-runs", name)
	patch(t, getPolicy(t, name), `{"spec":{"migration":{"trigger":"first"}}}`)
	waitFor(t, name, v1alpha1.StorageMigratedCondition, metav1.ConditionFalse, v1alpha1.ReasonForeignStorageMigration,
		[]string{"storageversionmigrations.storagemigration.k8s.io/foreign-runs;"})
	endMigration(t, theirs, "Failed")
	look(t, name)
	expect.Eventually(t, "ours has succeeded", func() (bool, string) {
		run := getPolicy(t, name).Status.Migration
		return run != nil && run.State == v1alpha1.MigrationSucceeded, fmt.Sprintf("%+v", run)
	})
}

// createMigration starts a migration as kube-controller-manager would, whose controller for it does not run here.
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
