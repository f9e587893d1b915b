// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package others knows the migrations of other clients: StorageVersionMigrations. Two migrations of
// the same objects at the same time would do the work twice, and both prune. It is pure.
package others

import (
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds by which other clients migrate: Kubernetes' own, and that of kube-storage-version-migrator.
// A cluster may lack both.
var Kinds = []schema.GroupKind{
	{Group: "storagemigration.k8s.io", Kind: "StorageVersionMigration"},
	{Group: "migration.k8s.io", Kind: "StorageVersionMigration"},
}

// NewList returns an empty list of a kind, for a client.
func NewList(mapping *apimeta.RESTMapping) *unstructured.UnstructuredList {
	kind := mapping.GroupVersionKind
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}

// Running returns the name of a migration of the resource that has started and not ended, the first
// by name, or an empty string.
func Running(list *unstructured.UnstructuredList, resource schema.GroupResource) string {
	var running []string
	for i := range list.Items {
		if runs(&list.Items[i], resource) {
			running = append(running, list.Items[i].GetName())
		}
	}
	if len(running) == 0 {
		return ""
	}
	return slices.Min(running)
}

// runs reports whether the object is a running migration of the resource.
func runs(object *unstructured.Unstructured, resource schema.GroupResource) bool {
	target, _, _ := unstructured.NestedStringMap(object.Object, "spec", "resource")
	if target["group"] != resource.Group || target["resource"] != resource.Resource {
		return false
	}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	isTrue := map[any]bool{}
	for _, condition := range conditions {
		if condition, ok := condition.(map[string]any); ok {
			isTrue[condition["type"]] = condition["status"] == "True"
		}
	}
	return isTrue["Running"] && !isTrue["Succeeded"] && !isTrue["Failed"]
}
