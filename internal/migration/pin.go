// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
)

// pinInterval is how long the workers may rely on one read of the
// CustomResourceDefinition.
const pinInterval = 200 * time.Millisecond

// checkDefinition returns an abortedError if the definition has changed since the pin.
func checkDefinition(p contract.Pin, definition *metav1.PartialObjectMetadata) error {
	changed := func(how string) error {
		return abortf("%s changed during the run (%s): nothing more was rewritten", p, how)
	}
	switch {
	case definition.UID != p.UID:
		return changed(fmt.Sprintf("uid %s, was %s", definition.UID, p.UID))
	case definition.DeletionTimestamp != nil:
		return changed("it is being deleted")
	case definition.Generation != p.Generation:
		return changed(fmt.Sprintf("generation %d, was %d", definition.Generation, p.Generation))
	}
	return nil
}

// pinCache is the last read of the CustomResourceDefinition. The workers share it: if it is too
// old, one worker reads and the others wait.
type pinCache struct {
	// reading is held by the worker that reads.
	reading sync.Mutex

	// mu guards the fields below. Only the worker that reads writes them.
	mu sync.Mutex
	// readTime is the start of the last read that found the definition unchanged.
	readTime time.Time
	// changed is set when the definition differs from the pin.
	changed error
}

func (w *pinCache) store(began time.Time, changed error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if changed != nil {
		w.changed = changed
		return
	}
	w.readTime = began
}

// checkPin reads the CustomResourceDefinition now.
func (e *Engine) checkPin(ctx context.Context) error {
	e.pinCache.reading.Lock()
	defer e.pinCache.reading.Unlock()
	return e.readPin(ctx)
}

// awaitPin returns if the last read began less than pinInterval ago. One worker reads again after
// half of that, so that the others need not wait. While the API server does not answer, all patches
// wait.
func (e *Engine) awaitPin(ctx context.Context) error {
	if e.pinReadWithin(pinInterval / 2) {
		return ctx.Err()
	}
	if !e.pinCache.reading.TryLock() {
		if e.pinReadWithin(pinInterval) {
			return ctx.Err()
		}
		e.pinCache.reading.Lock()
	}
	defer e.pinCache.reading.Unlock()
	if ctx.Err() != nil || e.pinReadWithin(pinInterval/2) {
		return ctx.Err()
	}
	return e.readPin(ctx)
}

// pinReadWithin reports whether a read within age found the definition unchanged.
func (e *Engine) pinReadWithin(age time.Duration) bool {
	e.pinCache.mu.Lock()
	defer e.pinCache.mu.Unlock()
	return e.pinCache.changed == nil && e.Clock.Now().Sub(e.pinCache.readTime) < age
}

// readPin reads the CustomResourceDefinition, with retries. It reads only the metadata: its
// generation shows every change of the spec.
func (e *Engine) readPin(ctx context.Context) error {
	if e.pinCache.changed != nil {
		return e.pinCache.changed
	}
	var began time.Time
	var changed error
	err := retry(ctx, e.Clock, func() (err error) {
		began = e.Clock.Now()
		changed, err = e.compareWithPin(ctx)
		return err
	})
	if err != nil {
		err = e.pinReadError(err)
	} else {
		err = changed
	}
	if err == nil || errors.As(err, new(abortedError)) {
		e.pinCache.store(began, err)
	}
	return err
}

// compareWithPin reads what the run is pinned to once. It returns how that has changed, and the
// error of the read.
func (e *Engine) compareWithPin(ctx context.Context) (changed, err error) {
	if !e.Pin.IsBuiltIn() {
		definition, err := e.Definition.DefinitionMetadata(ctx)
		if err != nil {
			return nil, err
		}
		return checkDefinition(e.Pin, definition), nil
	}
	shown, err := e.Discovery.ServedResource(ctx)
	switch {
	case err != nil:
		return nil, err
	case shown == nil:
		return abortf("%s is no longer served at version %s: nothing more was rewritten", e.Pin, e.Resource.Version), nil
	case shown.StorageVersionHash != e.Pin.StorageVersionHash:
		return abortf("%s changed during the run (storageVersionHash %s, was %s): nothing more was rewritten",
			e.Pin, shown.StorageVersionHash, e.Pin.StorageVersionHash), nil
	}
	return nil, nil
}

// pinReadError converts the error of a read: a deleted definition aborts the run.
func (e *Engine) pinReadError(err error) error {
	if status := statusOf(err); status != nil && status.Code == http.StatusNotFound {
		return abortf("%s does not exist any more: nothing more was rewritten", e.Pin)
	}
	return fmt.Errorf("cannot read %s, without which nothing is rewritten: %w", e.Pin, err)
}
