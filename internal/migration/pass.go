// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxExpiries bounds how often in a row the list of one page may expire.
const maxExpiries = 5

// pass brings every page to its end.
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

// nextPage lists the page after the last whole one.
func (e *Engine) nextPage(ctx context.Context, j *journal) (*metav1.PartialObjectMetadataList, error) {
	if e.earlier != nil {
		return e.earlier.page(j.record.Checkpoint.Continue, e.PageSize)
	}
	return e.pageAfter(ctx, j, j.record.Checkpoint.Continue, func() error { return j.restart(ctx) })
}

// pageAfter lists the page that the token names, and begins at the first one
// when the token has expired and no other is offered.
func (e *Engine) pageAfter(ctx context.Context, j *journal, token string, restart func() error) (*metav1.PartialObjectMetadataList, error) {
	log := logr.FromContextOrDiscard(ctx)
	for range maxExpiries {
		page, err := e.readPage(ctx, j, token)
		if !expired(err) {
			return page, err
		}
		if token = nextToken(err); token != "" {
			log.Info("The list expired; going on in a newer state of it")
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
	return e.each(ctx, j, page.Items, migrate, func(r result) error {
		report(ctx, r)
		e.Metrics.finished(r)
		if r.reason == ReasonConversionFailed {
			e.unconvertible.Store(true)
		}
		if err := j.note(ctx, r); err != nil {
			return err
		}
		j.progress.log(ctx, j.record.Counters)
		return nil
	})
}

// report logs every failed object, and what was done in another way than usual.
// There may be millions, so only those who ask for details are told; the record
// has the first of them, and what they are for.
func report(ctx context.Context, r result) {
	log := logr.FromContextOrDiscard(ctx).V(1)
	switch {
	case r.outcome == failed:
		log.Info("Object failed", "object", r.object, "reason", r.reason, "message", r.message, "command", r.command)
	case r.path != "":
		log.Info("Object accepted by fallback", "object", r.object, "fallback", r.path)
	}
}
