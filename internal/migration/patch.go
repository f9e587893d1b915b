// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// objectTries bounds the tries of one object.
const objectTries = 5

// migrateObject has one object stored at the storage version, or says why it
// is not. An error means that the run cannot go on, not that the object failed.
//
// Objects newer than the barrier are patched, too: one of them may be a write
// that began on the old storage and ended late. It costs a request, and a write
// only if the bytes differ.
func (e *Engine) migrateObject(ctx context.Context, object *metav1.PartialObjectMetadata, barrier string) (result, error) {
	for n := 1; ; n++ {
		if err := e.awaitPin(ctx); err != nil {
			return result{}, err
		}
		after, cause := e.patch(ctx, object)
		if cause == nil {
			return resultOf(object, proof(object, after)), nil
		}
		if ctx.Err() != nil {
			return result{}, ctx.Err()
		}
		last := n == objectTries
		cure := remedyFor(cause, object.Name)
		switch {
		case cure == stopRun:
			return result{}, abortf("cannot patch %s %s: %v", e.Resource.GroupResource(), keyOf(object), cause)
		case cure == restartPod:
			return result{}, fmt.Errorf("not allowed to patch %s %s: %w", e.Resource.GroupResource(), keyOf(object), cause)
		case cure == lookAgain && last:
			return e.lastLook(ctx, object, barrier, cause)
		case cure == giveUp || last:
			return failure(object, cause), nil
		}
		latest, err := e.prepareRetry(ctx, object, n, cure, cause)
		if err != nil {
			return result{}, err
		}
		if latest == nil {
			return resultOf(object, gone), nil
		}
		object = latest
	}
}

// patch asks for the object to be encoded anew. The body names no field but the
// resourceVersion, which makes the API server refuse it if the object was
// written since; apiVersion and kind follow from the address.
func (e *Engine) patch(ctx context.Context, object *metav1.PartialObjectMetadata) (*metav1.PartialObjectMetadata, error) {
	body, err := json.Marshal(map[string]any{"metadata": map[string]string{"resourceVersion": object.ResourceVersion}})
	if err != nil {
		return nil, err
	}
	after, err := e.Patcher.Patch(ctx, object.Namespace, object.Name, body)
	if err != nil {
		return nil, err
	}
	if after.ResourceVersion == "" {
		return nil, errors.New("the answer to the patch has no resourceVersion, so there is no telling what was stored")
	}
	return after, nil
}

// prepareRetry waits before try n+1, and returns the object to try, or nil if it
// is gone. It looks after it has waited, so that an object that others write all
// the time is patched before they write again.
//
// A server in trouble is given time by listing one object until that works, so
// that an outage costs no object its tries; what fails while the server answers
// is the object's fault.
func (e *Engine) prepareRetry(ctx context.Context, object *metav1.PartialObjectMetadata, n int, cure remedy, cause error) (*metav1.PartialObjectMetadata, error) {
	if err := e.Clock.Sleep(ctx, delay(n, cause)); err != nil {
		return nil, err
	}
	switch cure {
	case lookAgain:
		return e.lookUp(ctx, object)
	case awaitServer:
		_, err := e.list(ctx, "", metav1.ListOptions{Limit: 1})
		return object, err
	}
	return object, nil
}

// lastLook decides about an object whose last try met a conflict or nothing at
// all. One that is newer than the barrier and was written again since the last
// look was written when no old storage was left.
func (e *Engine) lastLook(ctx context.Context, object *metav1.PartialObjectMetadata, barrier string, cause error) (result, error) {
	latest, err := e.lookUp(ctx, object)
	switch {
	case err != nil:
		return result{}, err
	case latest == nil:
		return resultOf(object, gone), nil
	case newer(latest, barrier) && latest.ResourceVersion != object.ResourceVersion:
		return resultOf(object, current), nil
	}
	return failure(object, cause), nil
}
