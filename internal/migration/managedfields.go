// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// errManagedFieldsDropped is the cause of a patch that was stored without metadata.managedFields.
// With every patch an API server converts the object to each version that managedFields names. If
// no converter answers, API servers before Kubernetes 1.37 store the object without managedFields
// (k8s.io/apimachinery pkg/util/managedfields, UpdateNoErrors). Then no field manager owns its
// fields, and none can remove a field by server-side apply. API servers also do this for the stored
// object if they have converted it before.
var errManagedFieldsDropped = &apierrors.StatusError{ErrStatus: metav1.Status{
	Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError,
	Message: "the API server stores objects without metadata.managedFields, as no converter converts them to the versions that are named there; they get it back when one does",
}}

// droppedManagedFields reports whether a patch removed managedFields because no converter answered.
// An API server also drops them if an entry names a version that the definition no longer has
// (kubernetes#111937): those cannot be restored.
func (e *Engine) droppedManagedFields(before, after []metav1.ManagedFieldsEntry) bool {
	return len(before) > 0 && len(after) == 0 &&
		!slices.ContainsFunc(before, func(owner metav1.ManagedFieldsEntry) bool { return !e.serves(owner.APIVersion) })
}

func (e *Engine) serves(apiVersion string) bool {
	version, ofGroup := strings.CutPrefix(apiVersion, e.Resource.Group+"/")
	return ofGroup && (version == e.Resource.Version || slices.Contains(e.OldVersions, version))
}

// restoreManagedFields restores the managedFields that an object had before the patch at that
// version with that result. The object is stored at the storage version by now. Entries that were
// written since then remain. It gives up if the object cannot be converted to the version of an
// entry: every write would drop all entries.
func (e *Engine) restoreManagedFields(ctx context.Context, object *metav1.PartialObjectMetadata, version string, got patchResult) (result, error) {
	done := resultOf(object, rewritten)
	done.edited = true
	owners, attempts := object.ManagedFields, e.newAttempts()
	for got.cause != nil {
		if got.after != nil {
			object = got.after
		}
		if !attempts.uncounted(got) {
			remedy := remedyFor(got.cause, object.Name)
			switch {
			case remedy == stopRun || remedy == restartPod:
				return result{}, e.runEnds(remedy, object, got.cause)
			case remedy == giveUp || attempts.count == objectAttempts:
				logr.FromContextOrDiscard(ctx).V(1).Info("Object lost its managedFields", "object", done.object, "message", got.cause.Error())
				done.after = object
				return done, nil
			}
			latest, err := e.prepareRetry(ctx, object, attempts.count, remedy, got.cause)
			if err != nil || latest == nil {
				return resultOf(object, gone), err
			}
			object = latest
		}
		var err error
		if got, err = e.attempt(ctx, managedFieldsPatch(object, version, owners)); err != nil {
			return result{}, err
		}
	}
	done.after = got.after
	return done, nil
}

// managedFieldsPatch adds entries to the managedFields of an object.
func managedFieldsPatch(object *metav1.PartialObjectMetadata, version string, owners []metav1.ManagedFieldsEntry) Patch {
	all := slices.Clone(object.ManagedFields)
	for _, owner := range owners {
		if !slices.ContainsFunc(object.ManagedFields, func(present metav1.ManagedFieldsEntry) bool { return sameManager(present, owner) }) {
			all = append(all, owner)
		}
	}
	patch := Patch{Namespace: object.Namespace, Name: object.Name, Version: version, managedFields: all}
	patch.Body = patch.restoringBody(object.ResourceVersion)
	return patch
}

func sameManager(a, b metav1.ManagedFieldsEntry) bool {
	return a.Manager == b.Manager && a.Operation == b.Operation && a.APIVersion == b.APIVersion && a.Subresource == b.Subresource
}

// restoringBody returns a patch body that writes the managedFields. With a resourceVersion, it
// applies only to that state of the object.
func (p Patch) restoringBody(resourceVersion string) []byte {
	// The entries were decoded from JSON, so encoding cannot fail.
	body, _ := json.Marshal(metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: resourceVersion, ManagedFields: p.managedFields}})
	return body
}
