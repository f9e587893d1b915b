// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"strings"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
)

// minPreflight is the number of refusals from which the preflight may abort the run.
const minPreflight = 3

// Attempt is the result of a dry run on a few objects.
type Attempt struct {
	// Tried objects were patched without a write.
	Tried int `json:"tried"`
	// Refused objects would fail in a run.
	Refused []v1alpha1.MigrationFailure `json:"refused,omitempty"`
}

// Try does the preflight alone: it writes neither objects nor a record, if Checkpoints does not.
func (e *Engine) Try(ctx context.Context) (Attempt, error) {
	j, err := e.openJournal(ctx)
	if err != nil {
		return Attempt{}, err
	}
	e.prepare()
	if err := e.checkPin(ctx); err != nil {
		return Attempt{}, err
	}
	sample, err := e.preflightSample(ctx, j)
	if err != nil {
		return Attempt{}, err
	}
	refused, err := e.tryAll(ctx, j, sample)
	return Attempt{Tried: len(sample), Refused: refused}, err
}

// preflight tries the patch on a few objects as a dry run, before the first write. Refused objects
// are predicted to fail. If all objects are refused, it aborts the run. While webhooks or the API
// server are unavailable, it waits for them.
func (e *Engine) preflight(ctx context.Context, j *journal) error {
	if j.record.State != contract.StatePreflight {
		return nil
	}
	sample, err := e.preflightSample(ctx, j)
	if err != nil {
		return err
	}
	refused, err := e.tryAll(ctx, j, sample)
	if err != nil {
		return err
	}
	j.record.Predicted = refused[:min(len(refused), contract.MaxFailures)]
	logr.FromContextOrDiscard(ctx).Info("Preflight done: objects were tried without writing", "objects", len(sample), "refused", len(refused))
	if len(refused) >= minPreflight && len(refused) == len(sample) && len(e.Fallback) == 0 {
		return abortf("the API server refuses all %d objects of a sample, nothing was rewritten: %s: %s", len(refused), refused[0].Object, refused[0].Message)
	}
	return j.setState(ctx, contract.StatePropagating)
}

// preflightSample returns objects spread over the first ones.
func (e *Engine) preflightSample(ctx context.Context, j *journal) ([]metav1.PartialObjectMetadata, error) {
	var sample []metav1.PartialObjectMetadata
	token, read := "", int64(0)
	for {
		page, err := e.readPage(ctx, j, token)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			if slot := draw(e.Spec.Run, read); len(sample) < e.Preflight {
				sample = append(sample, page.Items[i])
			} else if slot < uint64(len(sample)) {
				sample[slot] = page.Items[i]
			}
			read++
		}
		if token = page.Continue; token == "" || read >= e.PageSize {
			return sample, nil
		}
	}
}

func (e *Engine) tryAll(ctx context.Context, j *journal, sample []metav1.PartialObjectMetadata) ([]v1alpha1.MigrationFailure, error) {
	var refused []v1alpha1.MigrationFailure
	err := e.forEach(ctx, j, sample, e.tryObject, func(r result) error {
		if r.outcome == failed {
			refused = append(refused, r.failure())
			logr.FromContextOrDiscard(ctx).V(1).Info("Object is expected to fail", "object", r.object, "reason", r.reason, "message", r.message)
		}
		return nil
	})
	return refused, err
}

// tryObject patches one object as a dry run. Only a refusal of the object itself counts as failed.
// It ignores that the object was written or deleted meanwhile, and that a webhook does not support
// dry runs.
func (e *Engine) tryObject(ctx context.Context, object *metav1.PartialObjectMetadata) (result, error) {
	attempts := e.newAttempts()
	for {
		patch := Patch{Namespace: object.Namespace, Name: object.Name, DryRun: true, Body: []byte("{}"), managedFields: object.ManagedFields}
		got, err := e.attempt(ctx, patch)
		switch {
		case err != nil:
			return result{}, err
		case got.cause == nil:
			return resultOf(object, current), nil
		case attempts.uncounted(got):
			continue
		}
		cause, remedy := got.cause, remedyFor(got.cause, object.Name)
		switch {
		case remedy == stopRun || remedy == restartPod:
			return result{}, e.runEnds(remedy, object, cause)
		case remedy == refetch || strings.Contains(cause.Error(), "does not support dry run"):
			return resultOf(object, gone), nil
		case attempts.count == objectAttempts && got.after != nil:
			return resultOf(object, current), nil
		case remedy == giveUp || attempts.count == objectAttempts:
			return e.failure(object, cause), nil
		}
		if err := e.Clock.Sleep(ctx, delay(attempts.count, cause)); err != nil {
			return result{}, err
		}
	}
}
