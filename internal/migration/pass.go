// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// maxExpiries bounds how often in a row the list of one page may expire.
const maxExpiries = 5

// pass migrates all pages.
func (e *Engine) pass(ctx context.Context, j *journal) error {
	for {
		if err := e.checkPin(ctx); err != nil {
			return err
		}
		page, err := e.nextPage(ctx, j)
		if err != nil {
			return err
		}
		if err := e.migratePage(ctx, j, page); err != nil {
			return err
		}
		if page.Continue == "" {
			return j.endPass(ctx)
		}
		if err := j.closePage(ctx, page.Continue); err != nil {
			return err
		}
	}
}

// nextPage lists the page after the last finished one.
func (e *Engine) nextPage(ctx context.Context, j *journal) (*metav1.PartialObjectMetadataList, error) {
	if e.previous != nil {
		return &metav1.PartialObjectMetadataList{Items: e.previous.failed}, nil
	}
	return e.pageAfter(ctx, j, j.record.Checkpoint.Continue, func() error { return j.restart(ctx) })
}

// pageAfter lists the page of the token. If the token has expired, it continues with the token that
// the API server offers instead, or calls restart and begins at the first page.
func (e *Engine) pageAfter(ctx context.Context, j *journal, token string, restart func() error) (*metav1.PartialObjectMetadataList, error) {
	log := logr.FromContextOrDiscard(ctx)
	for range maxExpiries {
		page, err := e.readPage(ctx, j, token)
		if !expired(err) {
			return page, err
		}
		if token = nextToken(err); token != "" {
			log.Info("The list expired; continuing in a newer state of it")
			continue
		}
		log.Info("The list expired; starting the pass again")
		if err := restart(); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("the list expires faster than its first page can be read")
}

// migratePage migrates the objects of one page.
func (e *Engine) migratePage(ctx context.Context, j *journal, page *metav1.PartialObjectMetadataList) error {
	j.openPage(page)
	barrier := j.record.Barrier
	migrate := func(ctx context.Context, object *metav1.PartialObjectMetadata) (result, error) {
		return e.migrateObject(ctx, object, barrier)
	}
	return e.forEach(ctx, j, page.Items, migrate, func(r result) error {
		report(ctx, r)
		e.Metrics.finished(r)
		if r.reason == v1alpha1.FailureConversionFailed {
			e.unconvertible.Store(true)
		}
		if err := j.add(ctx, r); err != nil {
			return err
		}
		j.progress.log(ctx, j.record.Counters)
		return nil
	})
}

// report logs an object that failed or took a fallback. There may be millions, so it logs at debug
// level; the record names the first of them.
func report(ctx context.Context, r result) {
	log := logr.FromContextOrDiscard(ctx).V(1)
	switch {
	case r.outcome == failed:
		log.Info("Object failed", "object", r.object, "reason", r.reason, "message", r.message, "command", r.command)
	case r.path != "":
		log.Info("Object accepted by fallback", "object", r.object, "fallback", r.path)
	}
}

// objectFunc processes one object.
type objectFunc func(ctx context.Context, object *metav1.PartialObjectMetadata) (result, error)

// forEach calls do for several objects concurrently, and handle for every result in the calling
// goroutine. Nothing is in flight when it returns. An error of handle cancels the other calls, and
// takes precedence over their errors.
func (e *Engine) forEach(ctx context.Context, j *journal, objects []metav1.PartialObjectMetadata, do objectFunc, handle func(result) error) error {
	inFlight, cancel := context.WithCancel(ctx)
	defer cancel()
	e.probeCandidates.open(objects)
	results, finished := e.startWorkers(inFlight, objects, do)
	var handleErr error
	for results != nil {
		var err error
		select {
		case <-e.waitReason.changed:
			err = j.setWaiting(ctx, e.waitReason.get())
		case r, ok := <-results:
			if !ok {
				results = nil
				break
			}
			err = handle(r)
		}
		if err != nil && handleErr == nil {
			handleErr = err
			cancel()
		}
		if handleErr != nil {
			handle = func(result) error { return nil }
		}
	}
	if handleErr != nil {
		return handleErr
	}
	return finished()
}

// startWorkers calls do for each object. The channel of results has room for all of them, so that
// workers never block.
func (e *Engine) startWorkers(ctx context.Context, objects []metav1.PartialObjectMetadata, do objectFunc) (<-chan result, func() error) {
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

// prefetch is the next page, which is read while the objects of the current page are patched.
// Errors are ignored: the page is then read again when it is needed.
type prefetch struct {
	options metav1.ListOptions
	page    chan *metav1.PartialObjectMetadataList
	cancel  context.CancelFunc
}

// startPrefetch starts to read the page of the token, unless the throttle allows only one request
// at a time: a list costs an API server as much as a hundred patches.
func (e *Engine) startPrefetch(ctx context.Context, token string) {
	if token == "" || !e.throttle.allowsSeveral() {
		return
	}
	ctx, end := context.WithCancel(ctx)
	next := &prefetch{options: e.nextPageOptions(token), page: make(chan *metav1.PartialObjectMetadataList, 1), cancel: end}
	e.prefetched = next
	go func() {
		page, err := e.Lister.List(ctx, ListScope{}, next.options)
		if err != nil {
			page = nil
		}
		next.page <- page
	}()
}

// takePrefetched returns the prefetched page if it is the page of the token, of the current size,
// or nil. No prefetch is running when it returns.
func (e *Engine) takePrefetched(token string) *metav1.PartialObjectMetadataList {
	next := e.prefetched
	if next == nil {
		return nil
	}
	e.prefetched = nil
	wanted := next.options == e.nextPageOptions(token)
	if !wanted {
		next.cancel()
	}
	page := <-next.page
	next.cancel()
	if !wanted {
		return nil
	}
	return page
}

// cancelPrefetch cancels the prefetch.
func (e *Engine) cancelPrefetch() { e.takePrefetched("") }
