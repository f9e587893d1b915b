// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"testing"
	"time"

	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// ServedMigrations returns the preferred version of StorageVersionMigration that an API server serves.
func ServedMigrations(tb testing.TB, server discovery.ServerGroupsInterface) schema.GroupVersion {
	tb.Helper()
	groups, err := server.ServerGroups()
	expect.NoError(tb, err)
	for _, group := range groups.Groups {
		if group.Name == storagemigrationv1.GroupName {
			return schema.GroupVersion{Group: group.Name, Version: group.PreferredVersion.Version}
		}
	}
	tb.Fatal("the API server does not serve StorageVersionMigrations")
	return schema.GroupVersion{}
}

// StorageVersionMigration returns a migration by Kubernetes of the objects of a resource, in the
// version that the API server serves.
func StorageVersionMigration(served schema.GroupVersion, name string, of schema.GroupVersionResource) *unstructured.Unstructured {
	resource := map[string]any{"group": of.Group, "resource": of.Resource}
	if served.Version == "v1alpha1" {
		resource["version"] = of.Version
	}
	migration := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"resource": resource}}}
	migration.SetGroupVersionKind(served.WithKind("StorageVersionMigration"))
	migration.SetName(name)
	return migration
}

// MigrationStatus returns the status of a StorageVersionMigration with one condition, such as Failed.
// v1alpha1 has another name for the time of a condition.
func MigrationStatus(condition string) map[string]any {
	now := time.Now().UTC().Format(time.RFC3339)
	return map[string]any{"resourceVersion": "1", "conditions": []any{map[string]any{
		"type": condition, "status": "True", "reason": "Test", "message": "1 object", "lastTransitionTime": now, "lastUpdateTime": now}}}
}
