// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// objectAttempts bounds the attempts of one object.
const objectAttempts = 5

// migrateObject has one object stored at the storage version, or returns a result that says why it
// is not. Only the name of the object needs to be known. An error means that the run cannot
// continue, not that the object failed.
//
// It also patches objects newer than the barrier: a write that began at the old version may have
// ended late. That costs a request, and a write only if the bytes differ.
//
// It first writes an object with preserved values that have a field now at the versions of those
// values (preserved.go).
func (e *Engine) migrateObject(ctx context.Context, object *metav1.PartialObjectMetadata, barrier string) (result, error) {
	known, err := e.resolve(ctx, object)
	if known == nil || err != nil {
		return resultOf(object, gone), err
	}
	if cause := e.Inventory.truncated(known, e.Resource.Version); cause != nil {
		return e.tooLarge(known, cause), nil
	}
	p, err := e.restorePreserved(ctx, known, barrier)
	if err != nil || p.gone {
		return resultOf(object, gone), err
	}
	r, err := e.persist(ctx, p.object, Patch{}, barrier)
	if err != nil {
		return result{}, err
	}
	if p.restored && r.outcome == current {
		r.outcome = rewritten
	}
	if r.after != nil {
		e.addNotRestored(&p, r.after)
		p.restored = p.restored && e.Inventory.wasRestored(known, r.after)
	}
	r.restored, r.refused = p.restored, p.refused
	return e.withPreserved(r, p.object), nil
}

// resolve reads an object of which only the name is known. It returns nil if the object was
// deleted.
func (e *Engine) resolve(ctx context.Context, object *metav1.PartialObjectMetadata) (*metav1.PartialObjectMetadata, error) {
	if object.ResourceVersion != "" {
		return object, nil
	}
	return e.getLatest(ctx, object)
}

// persist patches an object until it has an outcome: at the storage version, or on another path. There,
// it fails the object only on this path, and tries no fallback. A subresource that is not found does not
// exist: only the object's own path shows whether the object was deleted.
func (e *Engine) persist(ctx context.Context, object *metav1.PartialObjectMetadata, path Patch, barrier string) (result, error) {
	attempts, isOtherPath := e.newAttempts(), path.Version != "" || path.Subresource != ""
	for {
		patch := patchOf(object)
		patch.Version, patch.Subresource = path.Version, path.Subresource
		got, err := e.attempt(ctx, patch)
		if err != nil {
			return result{}, err
		}
		if got.cause == nil {
			return resultOfPatch(object, got.after), nil
		}
		if got.after != nil {
			return e.restoreManagedFields(ctx, object, path.Version, got)
		}
		if attempts.uncounted(got) {
			continue
		}
		cause, last := got.cause, attempts.count == objectAttempts
		remedy := remedyFor(cause, object.Name)
		switch {
		case isOtherPath && (remedy == stopRun || remedy == giveUp || last),
			path.Subresource != "" && (remedy == restartPod || reasonOf(cause) == v1alpha1.FailureNotFound):
			return e.failure(object, cause), nil
		case remedy == stopRun || remedy == restartPod:
			return result{}, e.runEnds(remedy, object, cause)
		case remedy == refetch && last:
			return e.finalOutcome(ctx, object, barrier, cause)
		case remedy == giveUp || last:
			return e.fallBack(ctx, object, barrier, cause)
		}
		latest, err := e.prepareRetry(ctx, object, attempts.count, remedy, cause)
		if err != nil {
			return result{}, err
		}
		if latest == nil {
			return resultOf(object, gone), nil
		}
		object = latest
	}
}

// runEnds returns the error that ends the run or the pod because no object can be patched.
func (e *Engine) runEnds(remedy remedy, object *metav1.PartialObjectMetadata, cause error) error {
	if remedy == stopRun {
		return abortf("cannot patch %s %s: %v", e.GroupResource(), keyOf(object), cause)
	}
	return fmt.Errorf("not allowed to patch %s %s: %w", e.GroupResource(), keyOf(object), cause)
}

// attempts counts the attempts for one object.
type attempts struct {
	breaker *breaker
	count   int
	outages int64
}

func (e *Engine) newAttempts() attempts {
	return attempts{breaker: &e.breaker, outages: e.breaker.outages.Load()}
}

// uncounted reports whether a failed attempt does not count. It also resets the count after an
// outage.
func (t *attempts) uncounted(failed patchResult) bool {
	if outages := t.breaker.outages.Load(); outages != t.outages {
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

// patchResult is the result of a patch: the object that the API server returned, or its error, and
// whether the error came during an outage. It has both if the object was stored without its
// managedFields.
type patchResult struct {
	after  *metav1.PartialObjectMetadata
	cause  error
	outage bool
}

// attempt sends a patch as soon as the breaker allows it. An error means that the run cannot
// continue. If an outage ended while the patch was in flight, its error belongs to that outage, and
// the patch is sent again.
func (e *Engine) attempt(ctx context.Context, patch Patch) (patchResult, error) {
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: patch.Namespace, Name: patch.Name}}
	for {
		if err := e.awaitBreaker(ctx); err != nil {
			return patchResult{}, err
		}
		ended := e.breaker.closed.Load()
		after, cause, err := e.send(ctx, patch)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return patchResult{}, err
		}
		switch {
		case cause != nil && after != nil:
			object.ManagedFields = patch.managedFields
		case cause != nil && infrastructure(cause) && e.breaker.closed.Load() != ended:
			continue
		}
		return patchResult{after, cause, e.breaker.record(object, cause)}, nil
	}
}

// send sends a patch through the throttle. cause is the error of the API server; err means that the
// run cannot continue.
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
		e.throttle.release() // the latency of a dry run says nothing about writes
	} else {
		e.throttle.releaseAfter(began, failed)
	}
	return after, cause, err
}

func (e *Engine) patch(ctx context.Context, patch Patch) (*metav1.PartialObjectMetadata, error) {
	began := time.Now()
	after, err := e.Patcher.Patch(ctx, patch)
	e.Metrics.patched(patch, time.Since(began), err)
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

// errNoVersion is an answer from which the outcome cannot be determined.
var errNoVersion = apierrors.NewGenericServerResponse(http.StatusInternalServerError, "patch", schema.GroupResource{}, "",
	"the answer to the patch has no resourceVersion, so there is no telling what was stored", 0, false)

// prepareRetry waits before attempt n+1, and returns the object to patch, or nil if it was deleted.
// It reads the object after the wait, to be faster than clients that write it frequently.
//
// While the API server fails, prepareRetry lists one object until that works, so that an outage
// does not use up the attempts of an object. What fails while the API server answers is the fault
// of the object.
func (e *Engine) prepareRetry(ctx context.Context, object *metav1.PartialObjectMetadata, n int, remedy remedy, cause error) (*metav1.PartialObjectMetadata, error) {
	if err := e.Clock.Sleep(ctx, delay(n, cause)); err != nil {
		return nil, err
	}
	switch remedy {
	case refetch:
		return e.getLatest(ctx, object)
	case awaitServer:
		if _, err := e.list(ctx, ListScope{}, metav1.ListOptions{Limit: 1}); !unreadable(err) {
			return object, err
		}
	}
	return object, nil
}

// finalOutcome determines the outcome of an object whose last attempt ended in a conflict or with
// not found. If the object is newer than the barrier and was written again since the last read, it
// was written when no API server used the old version.
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
