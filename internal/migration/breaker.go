// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// breakAfter is how many patches in a row, of any object, must fail for reasons
// that are no object's before all of them wait.
const breakAfter = 5

// breaker stops all patches while a webhook, etcd or the API server is away, so
// that an outage costs no object its tries.
type breaker struct {
	// probing is held by the worker that finds out when it is over.
	probing sync.Mutex

	mu    sync.Mutex
	inRow int
	cause error
	// outages counts those that a probe has seen.
	outages int
}

// note takes the end of a patch, and reports whether the breaker is open.
func (b *breaker) note(err error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil || !infrastructure(err) {
		b.inRow, b.cause = 0, nil
		return false
	}
	b.inRow++
	if b.inRow >= breakAfter {
		b.cause = err
	}
	return b.cause != nil
}

// open returns why all patches wait, or nil if they do not.
func (b *breaker) open() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cause
}

// outage counts an outage, once it is certain that there is one.
func (b *breaker) outage() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.outages++
}

func (b *breaker) seen() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.outages
}

// awaitBreaker returns when patches may go on. One worker probes with a patch
// that is not written, and the others wait for what it finds.
func (e *Engine) awaitBreaker(ctx context.Context) error {
	if e.breaker.open() == nil {
		return ctx.Err()
	}
	e.breaker.probing.Lock()
	defer e.breaker.probing.Unlock()
	if e.breaker.open() == nil {
		return ctx.Err()
	}
	return e.probeUntilAnswered(ctx)
}

func (e *Engine) probeUntilAnswered(ctx context.Context) error {
	log, cause, away := logr.FromContextOrDiscard(ctx), e.breaker.open(), 0
	for n := 1; cause != nil; n++ {
		if err := e.Clock.Sleep(ctx, delay(min(n, patience), cause)); err != nil {
			return err
		}
		if err := e.awaitPin(ctx); err != nil {
			return err
		}
		err := e.probe(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil || !infrastructure(err) {
			break
		}
		if away++; statusOf(err) != nil {
			away = 0
		}
		if away == patience {
			return fmt.Errorf("the API server stays away: %w", err)
		}
		if cause = err; n == 1 {
			e.breaker.outage()
			log.Info("Waiting: patches fail for reasons that are no object's", "cause", err.Error())
			e.notice.set("patches wait: " + shorten(err.Error(), maxMessage))
		}
	}
	e.breaker.note(nil)
	if e.notice.set("") {
		log.Info("Patches are answered again; going on")
	}
	return nil
}

// probe tries another object of the open page each time: the next one may be to
// blame for all that went wrong.
func (e *Engine) probe(ctx context.Context) error {
	canary := e.canaries.next()
	if canary == nil {
		_, err := e.Lister.List(ctx, Place{}, metav1.ListOptions{Limit: 1})
		return err
	}
	_, err := e.Patcher.Patch(ctx, Patch{Namespace: canary.Namespace, Name: canary.Name, DryRun: true, Body: []byte("{}")})
	return err
}

// canaries are the objects of the open page. Their order of use spreads over it.
type canaries struct {
	mu   sync.Mutex
	page []metav1.PartialObjectMetadata
	used int
}

func (c *canaries) open(page []metav1.PartialObjectMetadata) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.page, c.used = page, 0
}

// next begins at the end of the page, whose objects were not patched yet.
func (c *canaries) next() *metav1.PartialObjectMetadata {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.page) == 0 {
		return nil
	}
	c.used++
	return &c.page[len(c.page)-1-(c.used-1)%len(c.page)]
}
