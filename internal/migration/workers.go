// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// work is what is done to one object.
type work func(ctx context.Context, object *metav1.PartialObjectMetadata) (result, error)

// each does the work on several objects at a time, and has the results taken by
// the goroutine that calls it. When it returns, nothing is in flight. An error
// of a taker goes before those of the work that it ends.
func (e *Engine) each(ctx context.Context, j *journal, objects []metav1.PartialObjectMetadata, do work, take func(result) error) error {
	inFlight, cancel := context.WithCancel(ctx)
	defer cancel()
	e.canaries.open(objects)
	results, finished := e.start(inFlight, objects, do)
	var takeErr error
	for results != nil {
		var err error
		select {
		case <-e.notice.news:
			err = j.wait(ctx, e.notice.get())
		case r, ok := <-results:
			if !ok {
				results = nil
				break
			}
			err = take(r)
		}
		if err != nil && takeErr == nil {
			takeErr = err
			cancel()
		}
		if takeErr != nil {
			take = func(result) error { return nil }
		}
	}
	if takeErr != nil {
		return takeErr
	}
	return finished()
}

// start begins the work. Results never block a worker, so an early end needs no
// draining.
func (e *Engine) start(ctx context.Context, objects []metav1.PartialObjectMetadata, do work) (<-chan result, func() error) {
	workers, ctx := errgroup.WithContext(ctx)
	workers.SetLimit(e.Concurrency)
	results := make(chan result, len(objects))
	var workErr error
	go func() {
		defer close(results)
		for i := range objects {
			workers.Go(func() error {
				r, err := do(ctx, &objects[i])
				if err == nil {
					results <- r
				}
				return err
			})
		}
		workErr = workers.Wait()
	}()
	return results, func() error { return workErr }
}
