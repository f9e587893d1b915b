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
	// suspects are the objects that failed in that row, with the owners that they
	// lost.
	suspects []metav1.PartialObjectMetadata
	// outages counts those that a probe of another object has seen, and ended how
	// often patches were let through again.
	outages, closed int
}

// record takes the end of a patch, and reports whether all patches wait after it.
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

// outage counts an outage, once it is certain that there is one.
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

// close lets patches through again.
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

// awaitBreaker returns when patches may go on. One worker probes with a patch
// that is not written, and the others wait for what it finds.
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
	log.Info("Waiting: patches fail for reasons that are no object's", "cause", cause.Error())
	e.waitReason.set("patches wait: " + shorten(cause.Error(), maxMessage))
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
			return fmt.Errorf("the API server stays away: %w", cause)
		}
	}
	e.breaker.close()
	e.waitReason.set("")
	log.Info("Patches are answered again; going on")
	return nil
}

// probe tries a patch without writing it. First the objects that failed are
// tried: when they are answered, it is over. After a while, or when it is always
// the same object that failed, another object tells whose fault it is.
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
// they were not patched yet.
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

// waitReason carries why the run stands still from the workers to the goroutine that
// keeps the record.
type waitReason struct {
	mu      sync.Mutex
	text    string
	changed chan struct{}
}

func newWaitReason() *waitReason { return &waitReason{changed: make(chan struct{}, 1)} }

// set tells the text. Empty means that the run goes on.
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
