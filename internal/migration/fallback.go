// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// fallbackReasons are the refusals that a fallback may avoid.
var fallbackReasons = map[v1alpha1.MigrationFailureReason]bool{v1alpha1.FailureInvalid: true, v1alpha1.FailureAdmissionDenied: true, v1alpha1.FailureRefused: true, v1alpha1.FailureUnavailable: true}

// fallBack tries the allowed fallbacks, in order, for an object that the API server refuses. The
// object fails if all of them fail.
func (e *Engine) fallBack(ctx context.Context, object *metav1.PartialObjectMetadata, cause error) (result, error) {
	if !fallbackReasons[reasonOf(cause)] {
		return e.failure(object, cause), nil
	}
	for _, fallback := range e.Fallback {
		for _, path := range e.paths(fallback) {
			r, err := e.migrateBy(ctx, object, path)
			if err != nil {
				return result{}, err
			}
			if r.outcome == failed {
				logr.FromContextOrDiscard(ctx).V(1).Info("Fallback refused", "object", r.object, "fallback", fallback, "message", r.message)
				continue
			}
			if r.outcome != gone {
				r.path = fallback
			}
			return r, nil
		}
	}
	return e.failure(object, cause), nil
}

func (e *Engine) paths(fallback v1alpha1.MigrationFallback) []Patch {
	if fallback == v1alpha1.MigrationFallbackStatus {
		return []Patch{{Subresource: "status"}}
	}
	var paths []Patch
	for _, version := range e.OldVersions {
		paths = append(paths, Patch{Version: version})
	}
	return paths
}

// migrateBy patches one object on a fallback path. Not found means that the path does not exist:
// only the object's own path shows whether it was deleted.
func (e *Engine) migrateBy(ctx context.Context, object *metav1.PartialObjectMetadata, path Patch) (result, error) {
	for n := 1; ; n++ {
		patch := patchOf(object)
		patch.Version, patch.Subresource = path.Version, path.Subresource
		got, err := e.attempt(ctx, patch)
		switch {
		case err != nil:
			return result{}, err
		case got.cause == nil:
			return resultOfPatch(object, got.after), nil
		case got.after != nil:
			return e.restoreManagedFields(ctx, object, path.Version, got)
		case n == objectAttempts || reasonOf(got.cause) != v1alpha1.FailureConflict:
			return e.failure(object, got.cause), nil
		}
		latest, err := e.prepareRetry(ctx, object, n, refetch, got.cause)
		if err != nil {
			return result{}, err
		}
		if latest == nil {
			return resultOf(object, gone), nil
		}
		object = latest
	}
}
