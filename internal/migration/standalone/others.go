// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/others"
)

// storageMigrating is set on a CustomResourceDefinition by Kubernetes' own
// StorageVersionMigration.
const storageMigrating apiextensionsv1.CustomResourceDefinitionConditionType = "StorageMigrating"

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
	for _, kind := range others.Kinds {
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
	list := others.NewList(mapping)
	if err := f.Client.List(ctx, list); err != nil {
		return "", fmt.Errorf("cannot list storageversionmigrations.%s: %w", kind.Group, err)
	}
	return others.Running(list, resource), nil
}
