// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Options of a run.
type Options struct {
	// Run identifies the run, and with it the record that it may continue.
	Run string
	// Resource to migrate; its version is the storage version.
	Resource schema.GroupVersionResource
	// Pin is the state of the CustomResourceDefinition that the run is made for.
	Pin Pin
	// Settle is how long writes at the old version may take to drain.
	Settle time.Duration
	// Concurrency is the number of objects in flight, at least 1.
	Concurrency int
	// PageSize is the number of objects listed at once, at least 1. Memory
	// grows with it, and not with the number of objects.
	PageSize int64
}

// Engine does one run. All exported fields are required.
type Engine struct {
	Options
	Lister      Lister
	Patcher     Patcher
	Definition  Definition
	Discovery   Discovery
	Checkpoints Checkpoints
	Clock       Clock

	watcher watcher
}

// Run does the run, or what is left of it, and returns its record. A run that
// ended returns no error, whatever its end: the record tells. An error means
// that the run has not ended, and that another try goes on from the checkpoint.
func (e *Engine) Run(ctx context.Context) (Record, error) {
	log := logr.FromContextOrDiscard(ctx)
	j, err := openJournal(ctx, e.Options, e.Checkpoints, e.Clock)
	if err != nil {
		return Record{}, err
	}
	if j.record.Finished() {
		log.Info("The run has ended before; nothing to do", "state", j.record.State, "message", j.record.Message)
		return j.record, nil
	}
	log.Info("Migrating stored objects", "run", e.Options.Run, "resource", e.Resource.GroupResource().String(), "version", e.Resource.Version)
	err = e.finish(ctx, j, e.migrate(ctx, j))
	if err == nil {
		summarize(log, j.record)
	}
	return j.record, err
}

// migrate looks at the pin once more at the end, because a record that says
// Completed is a promise about the definition as it is then.
func (e *Engine) migrate(ctx context.Context, j *journal) error {
	if err := e.checkPin(ctx); err != nil {
		return err
	}
	if err := e.passBarrier(ctx, j); err != nil {
		return err
	}
	if err := e.pass(ctx, j); err != nil {
		return err
	}
	return e.checkPin(ctx)
}

// finish records how the run ended. A run that was interrupted stays as it is.
func (e *Engine) finish(ctx context.Context, j *journal, err error) error {
	var reason abortedError
	switch {
	case err == nil:
		return j.complete(ctx)
	case errors.As(err, &reason):
		return j.abort(ctx, reason.Error())
	}
	return err
}

func summarize(log logr.Logger, r Record) {
	took := r.CompletionTime.Sub(r.StartTime.Time)
	log = log.WithValues("total", r.Total, "rewritten", r.Rewritten, "current", r.Current, "gone", r.Gone, "failed", r.Failed, "took", took.String())
	switch {
	case r.State == StateAborted:
		log.Info("Migration aborted", "message", r.Message)
	case r.Complete():
		log.Info("Migration complete: every object is stored at the storage version")
	default:
		log.Info("Migration ended with failed objects: objects at the old version remain")
	}
}

// abortedError is why a run cannot go on, now or after a restart of the pod.
type abortedError string

func (a abortedError) Error() string { return string(a) }

func abortf(format string, args ...any) error { return abortedError(fmt.Sprintf(format, args...)) }
