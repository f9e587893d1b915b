// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// objectAttempts bounds the attempts of one object.
const objectAttempts = 5

// migrateObject has one object stored at the storage version, or says why it is not.
// Of the object, its name may be all that is known. An error means that the run cannot
// continue, not that the object failed.
//
// Objects newer than the barrier are patched, too: one of them may be a write that
// began on the old storage and ended late. It costs a request, and a write only if the
// bytes differ.
//
// An object with preserved values that have a field now is first written at the
// versions of those values (preserved.go).
func (e *Engine) migrateObject(ctx context.Context, object *metav1.PartialObjectMetadata, barrier string) (result, error) {
	known, err := e.resolve(ctx, object)
	if known == nil || err != nil {
		return resultOf(object, gone), err
	}
	if cause := e.Inventory.truncated(known, e.Resource.Version); cause != nil {
		return e.tooLarge(known, cause), nil
	}
	p, err := e.place(ctx, known, barrier)
	if err != nil || p.gone {
		return resultOf(object, gone), err
	}
	r, err := e.persist(ctx, p.object, Patch{}, barrier)
	if err != nil {
		return result{}, err
	}
	if p.placed && r.outcome == current {
		r.outcome = rewritten
	}
	if r.after != nil {
		e.noteUnplaced(&p, r.after)
		p.placed = p.placed && e.Inventory.wasPlaced(known, r.after)
	}
	r.placed, r.refused = p.placed, p.refused
	return e.notePreserved(r, p.object), nil
}

// resolve reads an object of which only the name is known; nil if it is gone.
func (e *Engine) resolve(ctx context.Context, object *metav1.PartialObjectMetadata) (*metav1.PartialObjectMetadata, error) {
	if object.ResourceVersion != "" {
		return object, nil
	}
	return e.getLatest(ctx, object)
}

// persist patches an object until it has an outcome: at the storage version, or on
// another path. What is refused on another path has failed there.
func (e *Engine) persist(ctx context.Context, object *metav1.PartialObjectMetadata, path Patch, barrier string) (result, error) {
	tried, elsewhere := e.newAttempts(), path.Version != ""
	for {
		patch := patchOf(object)
		patch.Version = path.Version
		got, err := e.attempt(ctx, patch)
		if err != nil {
			return result{}, err
		}
		if got.cause == nil {
			return proof(object, got.after), nil
		}
		if got.after != nil {
			return e.restoreManagedFields(ctx, object, path.Version, got)
		}
		if tried.uncounted(got) {
			continue
		}
		cause, last := got.cause, tried.count == objectAttempts
		cure := remedyFor(cause, object.Name)
		switch {
		case elsewhere && (cure == stopRun || cure == giveUp || last):
			return e.failure(object, cause), nil
		case cure == stopRun || cure == restartPod:
			return result{}, e.runEnds(cure, object, cause)
		case cure == refetch && last:
			return e.finalOutcome(ctx, object, barrier, cause)
		case cure == giveUp || last:
			return e.fallBack(ctx, object, cause)
		}
		latest, err := e.prepareRetry(ctx, object, tried.count, cure, cause)
		if err != nil {
			return result{}, err
		}
		if latest == nil {
			return resultOf(object, gone), nil
		}
		object = latest
	}
}

// runEnds says why no object can be patched: for good, or by this pod.
func (e *Engine) runEnds(cure remedy, object *metav1.PartialObjectMetadata, cause error) error {
	if cure == stopRun {
		return abortf("cannot patch %s %s: %v", e.GroupResource(), keyOf(object), cause)
	}
	return fmt.Errorf("not allowed to patch %s %s: %w", e.GroupResource(), keyOf(object), cause)
}

// attempts counts those of one object.
type attempts struct {
	breaker *breaker
	count   int
	outages int
}

func (e *Engine) newAttempts() attempts {
	return attempts{breaker: &e.breaker, outages: e.breaker.outageCount()}
}

// uncounted reports whether a failed attempt does not count. Attempts from before an
// outage that has ended no longer count, either.
func (t *attempts) uncounted(failed attempted) bool {
	if outages := t.breaker.outageCount(); outages != t.outages {
		t.count, t.outages = 0, outages
	}
	if failed.outage {
		return true
	}
	t.count++
	return false
}

// patchOf asks the API server to encode the object again. The body names no field but
// the resourceVersion, which makes the API server refuse it if the object was written
// since; apiVersion and kind follow from the address.
func patchOf(object *metav1.PartialObjectMetadata) Patch {
	// A resourceVersion is a word without quotes: %q makes JSON of it.
	body := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q}}`, object.ResourceVersion)
	return Patch{Namespace: object.Namespace, Name: object.Name, Body: body, managedFields: object.ManagedFields}
}

// attempted is the result of a patch: the object that the API server returned, or its
// error, and whether that came during an outage. Both, when the object was stored
// without its managedFields.
type attempted struct {
	after  *metav1.PartialObjectMetadata
	cause  error
	outage bool
}

// attempt sends a patch as soon as it may be sent. An error means that the run cannot
// continue. An error that was on its way while an outage ended belongs to that outage:
// the patch is sent again.
func (e *Engine) attempt(ctx context.Context, patch Patch) (attempted, error) {
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: patch.Namespace, Name: patch.Name}}
	for {
		if err := e.awaitBreaker(ctx); err != nil {
			return attempted{}, err
		}
		ended := e.breaker.closeCount()
		after, cause, err := e.send(ctx, patch)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return attempted{}, err
		}
		switch {
		case cause != nil && after != nil:
			object.ManagedFields = patch.managedFields
		case cause != nil && infrastructure(cause) && e.breaker.closeCount() != ended:
			continue
		}
		return attempted{after, cause, e.breaker.record(object, cause)}, nil
	}
}

// send sends a patch through the throttle. The first error is the API server's answer,
// the second means that the run cannot continue.
func (e *Engine) send(ctx context.Context, patch Patch) (after *metav1.PartialObjectMetadata, cause, err error) {
	if err := e.throttle.acquire(ctx); err != nil {
		return nil, nil, err
	}
	began := e.Clock.Now()
	if err = e.awaitPin(ctx); err == nil {
		began = e.Clock.Now()
		after, cause = e.patch(ctx, patch)
	}
	if failed := errors.Join(cause, err); failed == nil && patch.DryRun {
		e.throttle.release() // how fast that was says nothing about writes
	} else {
		e.throttle.releaseAfter(began, failed)
	}
	return after, cause, err
}

func (e *Engine) patch(ctx context.Context, patch Patch) (*metav1.PartialObjectMetadata, error) {
	after, err := e.Patcher.Patch(ctx, patch)
	if err != nil {
		return nil, err
	}
	if after.ResourceVersion == "" {
		return nil, errNoVersion
	}
	if e.droppedManagedFields(patch.managedFields, after.ManagedFields) {
		return after, errManagedFieldsDropped
	}
	return after, nil
}

// errNoVersion is an answer that proves nothing.
var errNoVersion = apierrors.NewGenericServerResponse(http.StatusInternalServerError, "patch", schema.GroupResource{}, "",
	"the answer to the patch has no resourceVersion, so there is no telling what was stored", 0, false)

// prepareRetry waits before attempt n+1, and returns the object to try, or nil if it
// is gone. It reads the object after the wait, so that an object that clients write
// all the time is patched before they write again.
//
// While the API server fails, it lists one object until that works, so that an outage
// costs no object its attempts; what fails while the API server answers is the
// object's fault.
func (e *Engine) prepareRetry(ctx context.Context, object *metav1.PartialObjectMetadata, n int, cure remedy, cause error) (*metav1.PartialObjectMetadata, error) {
	if err := e.Clock.Sleep(ctx, delay(n, cause)); err != nil {
		return nil, err
	}
	switch cure {
	case refetch:
		return e.getLatest(ctx, object)
	case awaitServer:
		if _, err := e.list(ctx, ListScope{}, metav1.ListOptions{Limit: 1}); !unreadable(err) {
			return object, err
		}
	}
	return object, nil
}

// finalOutcome decides about an object whose last attempt met a conflict, or no
// object. One that is newer than the barrier and was written again since the last read
// was written when no server used the old storage.
func (e *Engine) finalOutcome(ctx context.Context, object *metav1.PartialObjectMetadata, barrier string, cause error) (result, error) {
	latest, err := e.getLatest(ctx, object)
	switch {
	case err != nil:
		return result{}, err
	case latest == nil:
		return resultOf(object, gone), nil
	case newer(latest, barrier) && latest.ResourceVersion != object.ResourceVersion:
		r := resultOf(object, current)
		r.after = latest
		return r, nil
	}
	return e.failure(object, cause), nil
}
