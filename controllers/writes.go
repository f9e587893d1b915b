// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify/live"
)

const (
	// maxNames bounds how many objects are named.
	maxNames = 10
	// countTimeout bounds reading the metadata of all objects of a kind.
	countTimeout = 10 * time.Minute
	// followTime is how long an API server may take to see a change of a CustomResourceDefinition.
	// Writes up to then count as unconverted too.
	followTime = 5 * time.Second
)

// countWrites counts the objects of a kind that were written during the unconverted window.
func (r *reader) countWrites(ctx context.Context, s step.CountWrites) observed.BackgroundCheck {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	found, err := r.writesIn(ctx, s)
	if err != nil {
		return observed.BackgroundCheck{Reason: v1alpha1.ReasonObjectsUnreadable, Message: err.Error()}
	}
	return found
}

// placeOf reports whether the latest write of an object was in the window, by its resourceVersion, or later.
// An object that was written later may have been written in the window, too. The latest write of the
// CustomResourceDefinition ended the window.
func placeOf(head live.Head, s step.CountWrites) (in, later bool) {
	after, err := resourceversion.CompareResourceVersion(head.ResourceVersion, s.After)
	ended, endErr := resourceversion.CompareResourceVersion(head.ResourceVersion, s.CRD.ResourceVersion)
	known := err == nil && endErr == nil && after > 0
	return known && ended < 0, known && ended > 0
}

func (r *reader) writesIn(ctx context.Context, s step.CountWrites) (observed.BackgroundCheck, error) {
	cluster, err := r.connect(s.Reader)
	if err != nil {
		return observed.BackgroundCheck{}, err
	}
	version, _, err := live.VersionToRead(s.CRD)
	if err != nil {
		return observed.BackgroundCheck{}, err
	}
	// Writes at the version in which all objects are stored need no conversion.
	expected := s.CRD.Spec.Group + "/" + s.Storage
	isUnexpected := func(write live.Write) bool {
		return s.Storage == "" || write.APIVersion != expected && write.APIVersion != ""
	}
	var found observed.BackgroundCheck
	err = retryForbidden(ctx, func() error {
		found = observed.BackgroundCheck{AtLeast: s.After == ""}
		return cluster.Heads(ctx, crds.Resource(s.CRD, version), func(head live.Head) bool {
			if head.Created.Before(&s.CRD.CreationTimestamp) {
				found.Older++
			}
			until := s.Until.Add(followTime)
			recorded := func(is func(live.Write) bool) bool { return head.Between(s.Since, until, is) }
			switch in, later := placeOf(head, s); {
			case recorded(isUnexpected), in && !recorded(func(live.Write) bool { return true }):
				found.Objects++
				if len(found.Names) < maxNames {
					found.Names = append(found.Names, head.String())
				}
			case later:
				found.AtLeast = true
			}
			return true
		})
	})
	return found, err
}
