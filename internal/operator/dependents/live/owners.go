// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/conversion-operator/conversion-operator/internal/operator/dependents"
)

// repairTries bounds the writes to an object that other clients change at the same time.
const repairTries = 5

// repairOwners changes the ownerReferences of an object to the version that stays, and records
// that. It reports whether the object no longer is a dependent.
func (s *search) repairOwners(ctx context.Context, resource resource, named dependents.Object, object *metav1.PartialObjectMetadata) (bool, error) {
	objects := in(s.metadata, resource.GroupVersionResource, object.Namespace)
	for try := 1; ; try++ {
		references := s.target.Owners(object.OwnerReferences)
		if len(references) == 0 {
			return true, nil // its controller was faster
		}
		written, err := object, s.ownersExist(ctx, object, references)
		if err == nil {
			written, err = s.patch(ctx, objects, object, ownersPatch(s.target, object.OwnerReferences, references))
		}
		if apierrors.IsConflict(err) && try < repairTries {
			var current *metav1.PartialObjectMetadata
			if current, err = objects.Get(ctx, named.Name, metav1.GetOptions{}); err == nil {
				object = current
				continue
			}
		}
		if apierrors.IsNotFound(err) {
			return true, nil // deleted since it was read
		}
		for _, i := range references {
			repair := dependents.Repair{
				Object: named, UID: string(object.GetUID()), Field: fmt.Sprintf(".metadata.ownerReferences[%d].apiVersion", i),
				Before: object.OwnerReferences[i].APIVersion, After: s.target.APIVersion(s.target.To), ResourceVersionBefore: object.ResourceVersion,
			}
			if err != nil {
				repair.Failure = err.Error()
			} else {
				repair.ResourceVersionAfter = written.ResourceVersion
			}
			if err := s.record(repair); err != nil {
				return false, err
			}
		}
		return err == nil && !s.DryRun, nil
	}
}

// ownersExist returns an error if an owner does not exist: garbage collection would delete the
// object as soon as it can resolve the reference.
func (s *search) ownersExist(ctx context.Context, object *metav1.PartialObjectMetadata, references []int) error {
	for _, i := range references {
		reference := object.OwnerReferences[i]
		if s.target.Namespaced && object.Namespace == "" {
			return fmt.Errorf("its owner %s %s would be in a namespace, and it is in none: remove the reference", reference.Kind, reference.Name)
		}
		namespace := object.Namespace
		if !s.target.Namespaced {
			namespace = ""
		}
		owners := in(s.metadata, schema.GroupVersionResource{Group: s.target.Group, Version: s.target.To, Resource: s.target.Plural}, namespace)
		owner, err := owners.Get(ctx, reference.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && owner.UID != reference.UID {
			return fmt.Errorf("its owner %s %s with the uid %s does not exist: garbage collection would delete it; remove the reference, or the object", reference.Kind, reference.Name, reference.UID)
		}
		if err != nil {
			return fmt.Errorf("read its owner %s %s: %w", reference.Kind, reference.Name, errors.New(err.Error()))
		}
	}
	return nil
}

// ownersPatch changes only the apiVersions, and only if the references are still at their indexes.
func ownersPatch(target *dependents.Target, references []metav1.OwnerReference, which []int) []map[string]any {
	var operations []map[string]any
	for _, i := range which {
		path := fmt.Sprintf("/metadata/ownerReferences/%d/", i)
		operations = append(operations,
			map[string]any{"op": "test", "path": path + "uid", "value": references[i].UID},
			map[string]any{"op": "replace", "path": path + "apiVersion", "value": target.APIVersion(target.To)})
	}
	return operations
}

// patch writes an object, unless it has changed since it was read.
func (s *search) patch(
	ctx context.Context, objects metadata.ResourceInterface, object *metav1.PartialObjectMetadata, operations []map[string]any,
) (*metav1.PartialObjectMetadata, error) {
	patch, err := json.Marshal(append([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": object.UID},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": object.ResourceVersion},
	}, operations...))
	if err != nil {
		return nil, err
	}
	options := metav1.PatchOptions{FieldManager: fieldManager}
	if s.DryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return objects.Patch(ctx, object.Name, types.JSONPatchType, patch, options)
}

func in(client metadata.Interface, resource schema.GroupVersionResource, namespace string) metadata.ResourceInterface {
	if namespace == "" {
		return client.Resource(resource)
	}
	return client.Resource(resource).Namespace(namespace)
}
