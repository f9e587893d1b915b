// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// breakAfter is how many patches in a row, of any object, must fail because of
// infrastructure errors before all patches wait.
const breakAfter = 5

// breaker stops all patches while a webhook, etcd or the API server is unavailable, so
// that an outage costs no object its attempts.
type breaker struct {
	// probing is held by the worker that finds out when the outage is over.
	probing sync.Mutex

	mu    sync.Mutex
	inRow int
	cause error
	// suspects are the objects that failed in that row, with the managedFields that they
	// lost.
	suspects []metav1.PartialObjectMetadata
	// outages counts those that a probe of another object confirmed, and closed how
	// often patches were let through after an outage.
	outages, closed int
}

// record takes the result of a patch, and reports whether all patches wait after it.
func (b *breaker) record(object *metav1.PartialObjectMetadata, err error) (open bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil || !infrastructure(err) {
		b.reset()
		return false
	}
	if b.inRow++; b.inRow >= breakAfter {
		b.cause = err
	}
	if len(b.suspects) < breakAfter && !contains(b.suspects, object) {
		b.suspects = append(b.suspects, *object)
	}
	return b.cause != nil
}

func contains(objects []metav1.PartialObjectMetadata, object *metav1.PartialObjectMetadata) bool {
	return slices.ContainsFunc(objects, func(o metav1.PartialObjectMetadata) bool { return keyOf(&o) == keyOf(object) })
}

// open returns why all patches wait, or nil if they do not.
func (b *breaker) open() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cause
}

// outage counts an outage that a probe confirmed.
func (b *breaker) outage() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.outages++
}

func (b *breaker) outageCount() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.outages
}

// close ends the outage: patches are sent again.
func (b *breaker) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reset()
	b.closed++
}

func (b *breaker) reset() { b.inRow, b.cause, b.suspects = 0, nil, nil }

func (b *breaker) closeCount() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// awaitBreaker returns when patches may be sent. One worker probes with dry runs, and
// the others wait for its result.
func (e *Engine) awaitBreaker(ctx context.Context) error {
	if e.breaker.open() == nil {
		return ctx.Err()
	}
	e.breaker.probing.Lock()
	defer e.breaker.probing.Unlock()
	cause := e.breaker.open()
	if cause == nil {
		return ctx.Err()
	}
	return e.probeUntilAnswered(ctx, cause)
}

// probeUntilAnswered probes even if a patch that was in flight has ended the outage
// meanwhile: the first probe then finds the same.
func (e *Engine) probeUntilAnswered(ctx context.Context, cause error) error {
	log, away := logr.FromContextOrDiscard(ctx), 0
	log.Info("Waiting: patches fail because of infrastructure errors", "cause", cause.Error())
	e.waitReason.set("patches wait: " + truncate(cause.Error(), maxMessage))
	for n := 1; ; n++ {
		if err := e.Clock.Sleep(ctx, delay(min(n, patience), cause)); err != nil {
			return err
		}
		if err := e.awaitPin(ctx); err != nil {
			return err
		}
		if cause = e.probe(ctx, n); ctx.Err() != nil {
			return ctx.Err()
		}
		if cause == nil || !infrastructure(cause) {
			break
		}
		if away++; statusOf(cause) != nil {
			away = 0
		}
		if away == patience {
			return fmt.Errorf("the API server remains unreachable: %w", cause)
		}
	}
	e.breaker.close()
	e.waitReason.set("")
	log.Info("Patches succeed again; continuing")
	return nil
}

// probe sends a dry run. First it tries the objects that failed: when they succeed,
// the outage is over. After a while, or when the same object fails each time, it tries
// another object to tell an outage from a bad object.
func (e *Engine) probe(ctx context.Context, n int) error {
	suspects := e.breaker.suspectedObjects()
	object, other := e.probeCandidates.next(suspects), true
	if n <= patience && len(suspects) > 0 && (len(suspects) > 1 || object == nil) {
		object, other = &suspects[n%len(suspects)], false
	}
	if object == nil {
		_, err := e.Lister.List(ctx, ListScope{}, metav1.ListOptions{Limit: 1})
		return err
	}
	patch := Patch{Namespace: object.Namespace, Name: object.Name, DryRun: true, Body: []byte("{}"), managedFields: object.ManagedFields}
	if !other && len(patch.managedFields) > 0 {
		patch.Body = patch.restoringBody("")
	}
	_, err := e.patch(ctx, patch)
	if other && err != nil && infrastructure(err) {
		e.breaker.outage()
	}
	return err
}

func (b *breaker) suspectedObjects() []metav1.PartialObjectMetadata {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.suspects)
}

// probeCandidates are the objects of the open page. They are used from its end, where
// objects were not patched yet.
type probeCandidates struct {
	mu   sync.Mutex
	page []metav1.PartialObjectMetadata
	used int
}

func (c *probeCandidates) open(page []metav1.PartialObjectMetadata) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.page, c.used = page, 0
}

// next is an object that is not suspected, or nil.
func (c *probeCandidates) next(suspects []metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	c.mu.Lock()
	defer c.mu.Unlock()
	for range c.page {
		c.used++
		object := &c.page[len(c.page)-1-(c.used-1)%len(c.page)]
		if !contains(suspects, object) {
			return object
		}
	}
	return nil
}

// waitReason passes the reason why the run waits from the workers to the goroutine
// that writes the record.
type waitReason struct {
	mu      sync.Mutex
	text    string
	changed chan struct{}
}

func newWaitReason() *waitReason { return &waitReason{changed: make(chan struct{}, 1)} }

// set stores the reason. Empty means that the run continues.
func (n *waitReason) set(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.text == text {
		return
	}
	n.text = text
	select {
	case n.changed <- struct{}{}:
	default:
	}
}

func (n *waitReason) get() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text
}
