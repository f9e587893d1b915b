// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"encoding/json"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// objectTries bounds the tries of one object.
const objectTries = 5

// migrateObject has one object stored at the storage version, or says why it
// is not. An error means that the run cannot go on, not that the object failed.
func (e *Engine) migrateObject(ctx context.Context, object *metav1.PartialObjectMetadata, barrier string) (result, error) {
	for n := 1; ; n++ {
		if newer(object, barrier) {
			return resultOf(object, current), nil
		}
		after, cause := e.patch(ctx, object)
		if cause == nil {
			return resultOf(object, proof(object, after)), nil
		}
		if ctx.Err() != nil {
			return result{}, ctx.Err()
		}
		cure := remedyFor(cause, object.Name)
		switch cure {
		case stopRun:
			return result{}, abortf("cannot patch %s %s: %v", e.Resource.GroupResource(), keyOf(object), cause)
		case lookAgain:
			latest, err := e.lookUp(ctx, object)
			if err != nil {
				return result{}, err
			}
			if latest == nil {
				return resultOf(object, gone), nil
			}
			if newer(latest, barrier) {
				return resultOf(latest, current), nil
			}
			object = latest
		}
		if cure == giveUp || n == objectTries {
			return result{object: keyOf(object), outcome: failed, message: cause.Error()}, nil
		}
		if err := e.prepareRetry(ctx, n, cure, cause); err != nil {
			return result{}, err
		}
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

// prepareRetry waits before try n+1. A server in trouble is given time by
// listing one object until that works, so that an outage costs no object its
// tries; what fails while the server answers is the object's fault.
func (e *Engine) prepareRetry(ctx context.Context, n int, cure remedy, cause error) error {
	if err := e.Clock.Sleep(ctx, delay(n, cause)); err != nil {
		return err
	}
	if cure != awaitServer {
		return nil
	}
	_, err := e.list(ctx, "", metav1.ListOptions{Limit: 1})
	return err
}
