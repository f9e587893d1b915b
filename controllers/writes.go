// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"time"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/verify/live"
)

const (
	// maxNames is how many objects are named.
	maxNames = 10
	// countTimeout bounds the reading of all metadata of a kind.
	countTimeout = 10 * time.Minute
	// followTime is how long an API server may take to follow a change of a
	// CustomResourceDefinition: what was written by then counts too.
	followTime = 5 * time.Second
)

// countWrites reads the metadata of all objects of a kind.
func (r *reader) countWrites(ctx context.Context, s step.CountWrites) observed.BackgroundCheck {
	if !r.counts.enter(ctx) {
		return observed.BackgroundCheck{Reason: v1alpha1.ReasonSamplesUnreadable, Message: "the manager is shutting down"}
	}
	defer r.counts.leave()
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	found, err := r.writesIn(ctx, s)
	if err != nil {
		return observed.BackgroundCheck{Reason: v1alpha1.ReasonSamplesUnreadable, Message: err.Error()}
	}
	return found
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
	// Writes at the version in which all is stored are right.
	right := s.CRD.Spec.Group + "/" + s.Storage
	doubtful := func(write live.Write) bool {
		return s.Storage == "" || write.APIVersion != right && write.APIVersion != ""
	}
	var found observed.BackgroundCheck
	err = onceAllowed(ctx, func() error {
		found = observed.BackgroundCheck{}
		return cluster.Heads(ctx, crds.Resource(s.CRD, version), func(head live.Head) bool {
			if head.Between(s.Since, s.Until.Add(followTime), doubtful) {
				found.Objects++
				if len(found.Names) < maxNames {
					found.Names = append(found.Names, head.String())
				}
			}
			return true
		})
	})
	return found, err
}
