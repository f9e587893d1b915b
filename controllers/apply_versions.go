// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/plan/step"
)

// editVersions changes single fields of the one list that spec.versions is. Each
// place in it is tested for the name that is expected there, and all of it for
// the resourceVersion.
func (r *ConversionPolicyReconciler) editVersions(ctx context.Context, s step.EditVersions) error {
	patch, err := json.Marshal(versionsPatch(s))
	if err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Changing spec.versions of the CustomResourceDefinition", "change", s.Note)
	return r.Client.Patch(ctx, pinned(s.Pin), client.RawPatch(types.JSONPatchType, patch), fieldOwner)
}

func versionsPatch(s step.EditVersions) []map[string]any {
	patch := pinnedPatch(s.Pin.UID, s.Pin.ResourceVersion)
	for _, change := range s.Changes {
		at := fmt.Sprintf("/spec/versions/%d", change.Index)
		patch = append(patch, map[string]any{"op": "test", "path": at + "/name", "value": change.Name})
		switch {
		case change.Field == "":
			patch = append(patch, map[string]any{"op": "remove", "path": at})
		case change.Value == nil:
			patch = append(patch, map[string]any{"op": "remove", "path": at + "/" + change.Field})
		default:
			patch = append(patch, map[string]any{"op": "add", "path": at + "/" + change.Field, "value": change.Value})
		}
	}
	return patch
}
