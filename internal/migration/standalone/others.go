// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// storageMigrating is set on a CustomResourceDefinition by Kubernetes' own
// StorageVersionMigration.
const storageMigrating apiextensionsv1.CustomResourceDefinitionConditionType = "StorageMigrating"

// migrators are the kinds by which other clients migrate: Kubernetes' own, and that of
// kube-storage-version-migrator.
var migrators = []schema.GroupKind{
	{Group: "storagemigration.k8s.io", Kind: "StorageVersionMigration"},
	{Group: "migration.k8s.io", Kind: "StorageVersionMigration"},
}

// managedError says that a ConversionPolicy manages the resource.
type managedError string

func (m managedError) Error() string { return string(m) }

// checkOthers returns an error if another client migrates the objects of the target, or is
// responsible for that.
func (f *Finder) checkOthers(ctx context.Context, target *Target) error {
	if target.CRD != nil {
		if err := f.checkPolicy(ctx, target.CRD.Name); err != nil {
			return err
		}
	}
	for _, kind := range migrators {
		running, err := f.runningMigration(ctx, kind, target.Resource.GroupResource())
		if err != nil {
			return err
		}
		if running != "" {
			return fmt.Errorf("resource %s is being migrated by storageversionmigrations.%s/%s: wait for its end, or delete it", target.Name(), kind.Group, running)
		}
	}
	return nil
}

func (f *Finder) checkPolicy(ctx context.Context, name string) error {
	err := f.Client.Get(ctx, client.ObjectKey{Name: name}, &v1alpha1.ConversionPolicy{})
	switch {
	case err == nil:
		return managedError(fmt.Sprintf("ConversionPolicy %s manages the migration of this CustomResourceDefinition: run %s trigger %s", name, f.Program, name))
	case apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		return nil
	}
	return fmt.Errorf("cannot read ConversionPolicy %s: %w", name, err)
}

// runningMigration returns the name of a migration of the resource that runs, or an empty string.
func (f *Finder) runningMigration(ctx context.Context, kind schema.GroupKind, resource schema.GroupResource) (string, error) {
	mapping, err := f.Client.RESTMapper().RESTMapping(kind)
	if apimeta.IsNoMatchError(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := f.Client.List(ctx, list); err != nil {
		return "", fmt.Errorf("cannot list storageversionmigrations.%s: %w", kind.Group, err)
	}
	var running []string
	for i := range list.Items {
		if migrates(&list.Items[i], resource) {
			running = append(running, list.Items[i].GetName())
		}
	}
	if len(running) == 0 {
		return "", nil
	}
	return slices.Min(running), nil
}

// migrates reports whether a StorageVersionMigration of the resource has started and not ended.
func migrates(object *unstructured.Unstructured, resource schema.GroupResource) bool {
	group, _, _ := unstructured.NestedString(object.Object, "spec", "resource", "group")
	plural, _, _ := unstructured.NestedString(object.Object, "spec", "resource", "resource")
	if group != resource.Group || plural != resource.Resource {
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
