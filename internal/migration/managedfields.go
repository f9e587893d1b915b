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

// errOwnersDropped is a patch that was stored at a price. With every patch an API
// server converts the object to each version that metadata.managedFields names.
// Where no converter does that, API servers before Kubernetes 1.37 store the object
// without managedFields (k8s.io/apimachinery pkg/util/managedfields,
// UpdateNoErrors). All of its fields then belong to nobody who could ever remove
// one by applying it. That there is no converter to convert what is stored does not
// stop them, if they have converted it before.
var errOwnersDropped = &apierrors.StatusError{ErrStatus: metav1.Status{
	Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError,
	Message: "the API server stores objects without metadata.managedFields, as no converter converts them to the versions that are named there; they get it back when one does",
}}

// dropped tells whether a patch cost an object its owners because no converter
// answered. An API server drops them as well when one of them names a version that
// it does not have any more (kubernetes#111937): nobody can give those back.
func (e *Engine) dropped(before, after []metav1.ManagedFieldsEntry) bool {
	return len(before) > 0 && len(after) == 0 &&
		!slices.ContainsFunc(before, func(owner metav1.ManagedFieldsEntry) bool { return !e.serves(owner.APIVersion) })
}

func (e *Engine) serves(apiVersion string) bool {
	version, ofGroup := strings.CutPrefix(apiVersion, e.Resource.Group+"/")
	return ofGroup && (version == e.Resource.Version || slices.Contains(e.OldVersions, version))
}

// giveBack has an object own again what it did before a patch at that version,
// which got this answer. It is stored at the storage version by now. What others
// wrote since stays theirs, too. Given up is an object that cannot be converted to
// the version of an owner: every write costs it all of them.
func (e *Engine) giveBack(ctx context.Context, object *metav1.PartialObjectMetadata, version string, got attempted) (result, error) {
	done := resultOf(object, rewritten)
	done.edited = true
	owners, spent := object.ManagedFields, e.newTries()
	for got.cause != nil {
		if got.after != nil {
			object = got.after
		}
		if !spent.free(got) {
			cure := remedyFor(got.cause, object.Name)
			switch {
			case cure == stopRun || cure == restartPod:
				return result{}, e.runEnds(cure, object, got.cause)
			case cure == giveUp || spent.count == objectTries:
				logr.FromContextOrDiscard(ctx).V(1).Info("Object lost its managedFields", "object", done.object, "message", got.cause.Error())
				done.after = object
				return done, nil
			}
			latest, err := e.prepareRetry(ctx, object, spent.count, cure, got.cause)
			if err != nil || latest == nil {
				return resultOf(object, gone), err
			}
			object = latest
		}
		var err error
		if got, err = e.attempt(ctx, ownersPatch(object, version, owners)); err != nil {
			return result{}, err
		}
	}
	done.after = got.after
	return done, nil
}

// ownersPatch adds owners to those that an object has.
func ownersPatch(object *metav1.PartialObjectMetadata, version string, owners []metav1.ManagedFieldsEntry) Patch {
	all := slices.Clone(object.ManagedFields)
	for _, owner := range owners {
		if !slices.ContainsFunc(object.ManagedFields, func(present metav1.ManagedFieldsEntry) bool { return sameOwner(present, owner) }) {
			all = append(all, owner)
		}
	}
	patch := Patch{Namespace: object.Namespace, Name: object.Name, Version: version, owners: all}
	patch.Body = patch.givingBack(object.ResourceVersion)
	return patch
}

func sameOwner(a, b metav1.ManagedFieldsEntry) bool {
	return a.Manager == b.Manager && a.Operation == b.Operation && a.APIVersion == b.APIVersion && a.Subresource == b.Subresource
}

// givingBack is the body that has the owners written; with a resourceVersion, of
// that object alone.
func (p Patch) givingBack(resourceVersion string) []byte {
	// Entries were read as JSON: they can be written as that.
	body, _ := json.Marshal(metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: resourceVersion, ManagedFields: p.owners}})
	return body
}
