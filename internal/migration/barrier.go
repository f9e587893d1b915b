// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// discoveryInterval is the time between two looks at discovery.
	discoveryInterval = time.Second
	// discoveryReads is how often a run looks before it takes the resource for
	// not served: two minutes.
	discoveryReads = 120
)

// passBarrier waits until every new write is stored at the storage version, and
// records the resourceVersion of that moment. A restarted pod keeps the barrier
// of the first one: writes have drained since.
func (e *Engine) passBarrier(ctx context.Context, j *journal) error {
	log := logr.FromContextOrDiscard(ctx)
	if j.record.Barrier != "" {
		log.Info("Resuming", "barrier", j.record.Barrier, "pages", j.record.Checkpoint.Pages, "done", j.record.Checkpoint.Done())
		return nil
	}
	if err := e.awaitStorageVersion(ctx); err != nil {
		return err
	}
	log.Info("Waiting for writes at the old version to drain", "settle", e.Settle.String())
	if err := e.Clock.Sleep(ctx, e.Settle); err != nil {
		return err
	}
	list, err := e.list(ctx, "", metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	if list.ResourceVersion == "" {
		return abortf("the list of %s has no resourceVersion, so there is no telling which objects are current", e.Resource.GroupResource())
	}
	log.Info("Barrier passed: objects written from now on are current", "barrier", list.ResourceVersion)
	return j.passBarrier(ctx, list.ResourceVersion)
}

// awaitStorageVersion waits until two looks in a row show the resource with the
// same storageVersionHash: API servers behind one address agree, as far as can
// be seen through it. A server may still encode at the old version for a moment
// (kubernetes#130235), which the settle time is for.
func (e *Engine) awaitStorageVersion(ctx context.Context) error {
	var before string
	var seen bool
	for range discoveryReads {
		hash, served, err := e.storageVersionHash(ctx)
		if err != nil {
			return err
		}
		if served && seen && hash == before {
			return nil
		}
		before, seen = hash, served
		if err := e.Clock.Sleep(ctx, discoveryInterval); err != nil {
			return err
		}
	}
	return abortf("discovery does not show %s at version %s with a steady storage version: check that the CustomResourceDefinition serves it",
		e.Resource.GroupResource(), e.Resource.Version)
}

func (e *Engine) storageVersionHash(ctx context.Context) (hash string, served bool, err error) {
	err = patiently(ctx, e.Clock, func() error {
		hash, served, err = e.Discovery.StorageVersionHash(ctx)
		return err
	})
	return hash, served, err
}
