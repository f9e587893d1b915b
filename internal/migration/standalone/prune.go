// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
)

// prune reduces status.storedVersions to the storage version, after a complete run, and returns the
// versions that it removed. It writes only if the CustomResourceDefinition is the one of the run. A
// change of the storage version appends to storedVersions in the same write, so the resourceVersion
// prevents a race with it.
func (m *Migrator) prune(ctx context.Context, target *Target) (pruned []string, err error) {
	if target.CRD == nil || m.KeepStoredVersions {
		return nil, nil
	}
	storage := target.Resource.Version
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := m.Client.Get(ctx, client.ObjectKey{Name: target.CRD.Name}, crd); err != nil {
			return err
		}
		if why := target.changed(crd); why != "" {
			return fmt.Errorf("%s", why)
		}
		pruned = slices.DeleteFunc(slices.Clone(crd.Status.StoredVersions), func(version string) bool { return version == storage })
		if len(pruned) == 0 {
			return nil
		}
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"uid": crd.UID, "resourceVersion": crd.ResourceVersion},
			"status":   map[string]any{"storedVersions": []string{storage}},
		})
		if err != nil {
			return err
		}
		return m.Client.Status().Patch(ctx, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crd.Name}},
			client.RawPatch(types.MergePatchType, patch), client.FieldOwner(ManagedBy))
	})
	if err != nil {
		return nil, fmt.Errorf("status.storedVersions was not pruned: %w", err)
	}
	return pruned, nil
}

// changed says why the run proves nothing about this state of the CustomResourceDefinition; empty if
// it does.
func (t *Target) changed(crd *apiextensionsv1.CustomResourceDefinition) string {
	switch {
	case crd.UID != t.CRD.UID || crd.Generation != t.CRD.Generation || crds.StorageVersion(crd) != t.Resource.Version:
		return "the CustomResourceDefinition has changed since the run started: run the command again"
	case crd.DeletionTimestamp != nil:
		return "the CustomResourceDefinition is being deleted"
	case crds.Condition(crd, storageMigrating):
		return "Kubernetes is migrating the resource, as its condition StorageMigrating says: run the command again after that"
	case !slices.Contains(crd.Status.StoredVersions, t.Resource.Version):
		return "it lacks the storage version " + t.Resource.Version + ", and has " + strings.Join(crd.Status.StoredVersions, ", ")
	}
	return ""
}
