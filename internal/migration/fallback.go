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
func (e *Engine) fallBack(ctx context.Context, object *metav1.PartialObjectMetadata, barrier string, cause error) (result, error) {
	if !fallbackReasons[reasonOf(cause)] {
		return e.failure(object, cause), nil
	}
	for _, fallback := range e.Fallback {
		for _, path := range e.paths(fallback) {
			r, err := e.persist(ctx, object, path, barrier)
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
