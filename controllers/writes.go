// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"time"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
	"github.com/conversion-operator/conversion-operator/internal/plan"
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
func (r *reader) countWrites(ctx context.Context, step plan.CountWrites) plan.BackgroundCheck {
	if !r.counts.enter(ctx) {
		return plan.BackgroundCheck{Reason: v1alpha1.ReasonSamplesUnreadable, Message: "the manager is shutting down"}
	}
	defer r.counts.leave()
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	found, err := r.writesIn(ctx, step)
	if err != nil {
		return plan.BackgroundCheck{Reason: v1alpha1.ReasonSamplesUnreadable, Message: err.Error()}
	}
	return found
}

func (r *reader) writesIn(ctx context.Context, step plan.CountWrites) (plan.BackgroundCheck, error) {
	cluster, err := r.connect(step.Reader)
	if err != nil {
		return plan.BackgroundCheck{}, err
	}
	version, _, err := live.VersionToRead(step.CRD)
	if err != nil {
		return plan.BackgroundCheck{}, err
	}
	// Writes at the version in which all is stored are right.
	right := step.CRD.Spec.Group + "/" + step.Storage
	doubtful := func(write live.Write) bool {
		return step.Storage == "" || write.APIVersion != right && write.APIVersion != ""
	}
	var found plan.BackgroundCheck
	err = onceAllowed(ctx, func() error {
		found = plan.BackgroundCheck{}
		return cluster.Heads(ctx, crds.Resource(step.CRD, version), func(head live.Head) bool {
			if head.Between(step.Since, step.Until.Add(followTime), doubtful) {
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
