// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
)

// previousRun is a previous run for the same state of the definition. The storage version has not
// changed since, so API servers stored nothing at an old version after the barrier of that run, and
// its counts are still valid.
type previousRun struct {
	record contract.Record
	// failed are objects of which only the names are known. They are one page: a list of all failures is bounded.
	failed []metav1.PartialObjectMetadata
}

// openPreviousRun reads a previous run from the data of its ConfigMap. The error says why this run
// cannot continue it.
func openPreviousRun(data map[string]string, pin contract.Pin) (*previousRun, error) {
	record, err := contract.ParseRecord([]byte(data[contract.RecordKey]))
	if err != nil {
		return nil, err
	}
	failures, err := FailuresOf(data)
	switch {
	case err != nil:
		return nil, err
	case record.State != contract.StateCompleted:
		return nil, fmt.Errorf("run %s is %s", record.Run, record.State)
	case !record.Matches(pin):
		return nil, fmt.Errorf("the CustomResourceDefinition changed since run %s", record.Run)
	case int64(len(failures)) != record.Failed:
		return nil, fmt.Errorf("run %s lists %d of %d failed objects", record.Run, len(failures), record.Failed)
	}
	keys := make([]string, len(failures))
	for i, f := range failures {
		keys[i] = f.Object
	}
	return &previousRun{record: record, failed: objectsOf(keys)}, nil
}

// continuePreviousRun continues the previous run if the specification names one. If that is not
// possible, the run migrates every object.
func (e *Engine) continuePreviousRun(ctx context.Context, j *journal) error {
	fresh := j.record.Barrier == "" && j.record.Repeats == 0
	if e.PreviousRun == nil || !fresh && j.record.RetryOf == "" {
		return nil
	}
	log := logr.FromContextOrDiscard(ctx)
	previous, err := e.loadPreviousRun(ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && !fresh:
		return fmt.Errorf("cannot read what run %s has left to do: %w", j.record.RetryOf, err)
	case err != nil:
		log.Info("Migrating every object: the previous run cannot be continued", "cause", err.Error())
		return nil
	}
	e.previous = previous
	log.Info("Migrating only the objects that failed in the previous run", "previousRun", previous.record.Run, "objects", len(previous.failed))
	if !fresh {
		return nil
	}
	return j.continueFrom(ctx, previous.record)
}

func (e *Engine) loadPreviousRun(ctx context.Context) (*previousRun, error) {
	var data map[string]string
	err := retry(ctx, e.Clock, func() (err error) {
		data, err = e.PreviousRun.Load(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return openPreviousRun(data, e.Pin)
}
