// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxExpiries bounds how often in a row the list of one page may expire.
const maxExpiries = 5

// pass brings every page to its end. It leaves the last page open: the journal
// closes it together with the run.
func (e *Engine) pass(ctx context.Context, j *journal) error {
	meter := newMeter(e.Clock, j.record.Checkpoint.Done())
	for {
		if err := e.checkPin(ctx); err != nil {
			return err
		}
		page, err := e.nextPage(ctx, j)
		if err != nil {
			return err
		}
		if err := e.migratePage(ctx, j, page, meter); err != nil {
			return err
		}
		if page.Continue == "" {
			return nil
		}
		if err := j.closePage(ctx, page.Continue); err != nil {
			return err
		}
	}
}

// nextPage lists the page after the last whole one.
func (e *Engine) nextPage(ctx context.Context, j *journal) (*metav1.PartialObjectMetadataList, error) {
	log := logr.FromContextOrDiscard(ctx)
	token := j.record.Checkpoint.Continue
	for range maxExpiries {
		page, err := e.list(ctx, "", metav1.ListOptions{Limit: e.PageSize, Continue: token})
		if !expired(err) {
			return page, err
		}
		if token = nextToken(err); token != "" {
			log.Info("The list expired; going on in a newer state of it")
			continue
		}
		log.Info("The list expired; starting the pass again")
		j.restart()
	}
	return nil, errors.New("the list expires faster than its first page can be read")
}

// migratePage migrates the objects of one page, several at a time. When it
// returns, nothing is in flight.
func (e *Engine) migratePage(ctx context.Context, j *journal, page *metav1.PartialObjectMetadataList, meter *meter) error {
	barrier := j.record.Barrier
	j.openPage(page)
	inFlight, cancel := context.WithCancel(ctx)
	defer cancel()
	workers, inFlight := errgroup.WithContext(inFlight)
	workers.SetLimit(e.Concurrency)

	// Results never block a worker, so an early end needs no draining.
	results := make(chan result, len(page.Items))
	var workErr error
	go func() {
		defer close(results)
		for i := range page.Items {
			workers.Go(func() error {
				r, err := e.migrateObject(inFlight, &page.Items[i], barrier)
				if err == nil {
					results <- r
				}
				return err
			})
		}
		workErr = workers.Wait()
	}()

	var noteErr error
	for r := range results {
		report(ctx, r)
		if noteErr == nil {
			if noteErr = j.note(ctx, r); noteErr != nil {
				cancel()
			}
		}
		meter.tick(ctx, j.record.Counters)
	}
	if noteErr != nil {
		return noteErr
	}
	return workErr
}

// report logs every failed object: the record has room for a few only.
func report(ctx context.Context, r result) {
	if r.outcome == failed {
		logr.FromContextOrDiscard(ctx).Info("Object failed", "object", r.object, "message", r.message)
	}
}
