// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// switchCRD applies spec.conversion and owns nothing else: spec.versions is one atomic list, which
// belongs to the author of the CustomResourceDefinition. With the uid and the resourceVersion, the
// API server refuses the write if anything changed since the decision. The field of a
// CompositeResourceDefinition has the same path and the same form.
func (r *ConversionPolicyReconciler) switchCRD(ctx context.Context, s step.SwitchCRD) error {
	conversion, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s.Conversion)
	if err != nil {
		return err
	}
	crd := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"conversion": conversion},
	}}
	crd.SetGroupVersionKind(cmp.Or(s.Pin.Composite, apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")))
	crd.SetName(s.Pin.Name)
	crd.SetUID(s.Pin.UID)
	crd.SetResourceVersion(s.Pin.ResourceVersion)
	ctrl.LoggerFrom(ctx).Info("Switching the CustomResourceDefinition to the webhook")
	return r.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(crd), fieldOwner, client.ForceOwnership)
}

// restoreCRD replaces the whole block. Giving up our fields by server-side apply would leave an
// empty block, which the API server refuses. A CompositeResourceDefinition has no strategy None: without
// the block, Crossplane writes none to the CustomResourceDefinition.
func (r *ConversionPolicyReconciler) restoreCRD(ctx context.Context, s step.RestoreCRD) error {
	operation := map[string]any{"op": "replace", "path": "/spec/conversion", "value": map[string]any{"strategy": apiextensionsv1.NoneConverter}}
	if !s.Pin.Composite.Empty() {
		operation = map[string]any{"op": "remove", "path": "/spec/conversion"}
	}
	ctrl.LoggerFrom(ctx).Info("Restoring the CustomResourceDefinition's conversion strategy to None")
	return r.patchPinned(ctx, s.Pin, operation)
}

// addStorageVersion writes the CustomResourceDefinition without a change. In each such write, the API
// server adds the storage version to status.storedVersions. In the status, it accepts a list without it.
func (r *ConversionPolicyReconciler) addStorageVersion(ctx context.Context, s step.AddStorageVersion) error {
	ctrl.LoggerFrom(ctx).Info("Writing the CustomResourceDefinition, so that status.storedVersions gets the storage version")
	return r.patchPinned(ctx, s.Pin)
}

// pruneStoredVersions sets status.storedVersions to the storage version alone. A change of the
// storage version appends to storedVersions in the same write, so the resourceVersion prevents the
// race.
func (r *ConversionPolicyReconciler) pruneStoredVersions(ctx context.Context, s step.PruneStoredVersions) error {
	ctrl.LoggerFrom(ctx).Info("Pruning status.storedVersions", "storageVersion", s.StorageVersion)
	return r.Client.Status().Patch(ctx, pinned(s.Pin), mergePatch(map[string]any{
		"metadata": map[string]any{"uid": s.Pin.UID, "resourceVersion": s.Pin.ResourceVersion},
		"status":   map[string]any{"storedVersions": []string{s.StorageVersion}},
	}), fieldOwner)
}

// patchPinned patches the object that a decision was about.
func (r *ConversionPolicyReconciler) patchPinned(ctx context.Context, pin step.Pin, operations ...map[string]any) error {
	return r.Client.Patch(ctx, pinned(pin), jsonPatch(pinnedPatch(pin.UID, pin.ResourceVersion, operations...)), fieldOwner)
}

// patch is a client.Patch with what it has to be in JSON.
type patch struct {
	kind    types.PatchType
	content any
}

func mergePatch(content map[string]any) client.Patch { return patch{types.MergePatchType, content} }

func jsonPatch(operations []map[string]any) client.Patch {
	return patch{types.JSONPatchType, operations}
}

// Type implements client.Patch.
func (p patch) Type() types.PatchType { return p.kind }

// Data implements client.Patch.
func (p patch) Data(client.Object) ([]byte, error) { return json.Marshal(p.content) }

// pinnedPatch returns a JSON patch that the API server refuses if the object was replaced or
// changed.
func pinnedPatch(uid types.UID, resourceVersion string, operations ...map[string]any) []map[string]any {
	return append([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": uid},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": resourceVersion},
	}, operations...)
}

// pinned names the object that is written.
func pinned(pin step.Pin) client.Object {
	if pin.Composite.Empty() {
		return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: pin.Name}}
	}
	xrd := &unstructured.Unstructured{}
	xrd.SetGroupVersionKind(pin.Composite)
	xrd.SetName(pin.Name)
	return xrd
}

// editVersions changes single fields of the list spec.versions. The patch tests the name of each
// version at its index, and the resourceVersion of the whole object.
func (r *ConversionPolicyReconciler) editVersions(ctx context.Context, s step.EditVersions) error {
	var operations []map[string]any
	for _, change := range s.Changes {
		path := fmt.Sprintf("/spec/versions/%d", change.Index)
		operations = append(operations, map[string]any{"op": "test", "path": path + "/name", "value": change.Name})
		switch {
		case change.Field == "":
			operations = append(operations, map[string]any{"op": "remove", "path": path})
		case change.Value == nil:
			operations = append(operations, map[string]any{"op": "remove", "path": path + "/" + change.Field})
		default:
			operations = append(operations, map[string]any{"op": "add", "path": path + "/" + change.Field, "value": change.Value})
		}
	}
	ctrl.LoggerFrom(ctx).Info("Changing spec.versions of the CustomResourceDefinition", "change", s.Note)
	return r.patchPinned(ctx, s.Pin, operations...)
}
