// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// breakAfter is the number of consecutive patches, of any object, that must fail because of
// infrastructure errors before all patches wait.
const breakAfter = 5

// breaker stops all patches while a webhook, etcd or the API server is unavailable, so that an
// outage does not use up the attempts of objects.
type breaker struct {
	// probing is held by the worker that probes whether the outage is over.
	probing sync.Mutex

	mu    sync.Mutex
	inRow int
	cause error
	// suspects are the objects of the consecutive failures, with the managedFields that they lost.
	suspects []metav1.PartialObjectMetadata

	// outages counts the outages that a probe of another object confirmed. closed counts how often
	// the breaker closed after an outage.
	outages, closed atomic.Int64
}

// record records the result of a patch, and reports whether all patches wait now.
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

// open returns why all patches wait, or nil.
func (b *breaker) open() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cause
}

// close ends the outage: patches are sent again.
func (b *breaker) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reset()
	b.closed.Add(1)
}

func (b *breaker) reset() { b.inRow, b.cause, b.suspects = 0, nil, nil }

// awaitBreaker waits until patches may be sent. One worker probes with dry runs, and the others
// wait for it.
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

// probeUntilAnswered probes until the outage is over. It also probes if a patch that was in flight
// has ended the outage meanwhile: the first probe then succeeds.
func (e *Engine) probeUntilAnswered(ctx context.Context, cause error) error {
	log, unreachable := logr.FromContextOrDiscard(ctx), 0
	log.Info("Waiting: patches fail because of infrastructure errors", "cause", cause.Error())
	e.waitReason.set("patches wait: " + truncate(cause.Error(), maxMessage))
	for n := 1; ; n++ {
		if err := e.Clock.Sleep(ctx, delay(min(n, maxAttempts), cause)); err != nil {
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
		if unreachable++; statusOf(cause) != nil {
			unreachable = 0
		}
		if unreachable == maxAttempts {
			return fmt.Errorf("the API server remains unreachable: %w", cause)
		}
	}
	e.breaker.close()
	e.waitReason.set("")
	log.Info("Patches succeed again; continuing")
	return nil
}

// probe sends a dry run. At first it patches the objects that failed: the outage is over when they
// succeed. After a while, or if always the same object fails, it patches another object, to
// distinguish an outage from a bad object.
func (e *Engine) probe(ctx context.Context, n int) error {
	suspects := e.breaker.suspectedObjects()
	object, other := e.probeCandidates.next(suspects), true
	if n <= maxAttempts && len(suspects) > 0 && (len(suspects) > 1 || object == nil) {
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
		e.breaker.outages.Add(1)
	}
	return err
}

func (b *breaker) suspectedObjects() []metav1.PartialObjectMetadata {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.suspects)
}

// probeCandidates are the objects of the current page. They are used from its end, where objects
// are not patched yet.
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

// next returns an object that is not suspected, or nil.
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

// waitReason passes the reason why the run waits from the workers to the goroutine that writes the
// record.
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
