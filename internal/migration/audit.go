// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxRepeats is how often a run begins again before it is aborted.
const maxRepeats = 3

// lagError says that an object was stored at the old version after the barrier.
type lagError string

func (l lagError) Error() string {
	return fmt.Sprintf("%s was stored at an old version after the barrier: an API server still wrote at that version", string(l))
}

// audit patches once more what was found current early. Patches that found
// nothing to do may have met an API server that encoded at the old version
// itself; the settle time later none does.
func (e *Engine) audit(ctx context.Context, j *journal) error {
	log := logr.FromContextOrDiscard(ctx)
	if len(j.again.Early) == 0 {
		return nil
	}
	if rest := j.again.Until.Add(e.propagationDelay(j)).Sub(e.Clock.Now()); rest > 0 {
		log.Info("Waiting before objects that were found current are audited", "objects", len(j.again.Early), "wait", rest.Round(time.Second).String())
		if err := e.Clock.Sleep(ctx, rest); err != nil {
			return err
		}
	}
	if _, err := e.review(ctx, j, objectsOf(j.again.Early)); err != nil {
		return err
	}
	log.Info("Audit passed: objects that were found current are", "objects", len(j.again.Early))
	return nil
}

// review patches objects once more, and returns how many it found unchanged. One
// that changes although nothing but its encoding could is a lagError.
func (e *Engine) review(ctx context.Context, j *journal, objects []metav1.PartialObjectMetadata) (unchanged int64, err error) {
	barrier := j.record.Barrier
	again := func(ctx context.Context, object *metav1.PartialObjectMetadata) (result, error) {
		return e.reviewObject(ctx, object, barrier)
	}
	for len(objects) > 0 {
		n := min(int64(len(objects)), e.PageSize)
		err := e.each(ctx, j, objects[:n], again, func(r result) error {
			switch {
			case r.outcome == rewritten:
				return lagError(r.object)
			case r.outcome == failed && j.record.Failed == 0:
				return abortf("cannot verify %s: %s", r.object, r.message)
			case r.outcome == current:
				unchanged++
			}
			return nil
		})
		if err != nil {
			return unchanged, err
		}
		objects = objects[n:]
	}
	return unchanged, nil
}

// reviewObject patches one object at the storage version, as the pass does. An admission webhook that
// changes objects at every write leaves more of a trace than a resourceVersion.
func (e *Engine) reviewObject(ctx context.Context, object *metav1.PartialObjectMetadata, barrier string) (result, error) {
	known, err := e.known(ctx, object)
	if known == nil || err != nil {
		return resultOf(object, gone), err
	}
	if cause := e.Inventory.shortened(known, e.Resource.Version); cause != nil {
		return e.tooLarge(known, cause), nil
	}
	r, err := e.persist(ctx, known, Patch{}, barrier)
	if r.outcome == rewritten && r.edited {
		r.outcome = current
	}
	return r, err
}

// propagationDelay doubles with every repeat.
func (e *Engine) propagationDelay(j *journal) time.Duration {
	return e.PropagationDelay.Duration << j.record.Repeats
}
