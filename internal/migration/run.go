// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/tracing"
)

// Engine does one run. All exported fields but Earlier, Tracer, Metrics and
// Inventory are required.
type Engine struct {
	contract.Spec
	Lister      Lister
	Patcher     Patcher
	Definition  Definition
	Discovery   Discovery
	Servers     Servers
	Checkpoints Checkpoints
	Clock       Clock
	// PreviousRun is the checkpoint of a run of which only the failed objects are
	// migrated, if that is possible.
	PreviousRun Checkpoints
	// Tracer of the run and its phases.
	Tracer tracing.Tracer
	// Metrics count every object and the patches in flight. They also wrap Patcher and
	// Checkpoints.
	Metrics *Metrics
	// Inventory reads the values that annotations preserve. Without it, they are neither
	// counted nor restored.
	Inventory *Inventory

	previous        *previousRun
	pinCache        pinCache
	breaker         breaker
	probeCandidates probeCandidates
	throttle        *throttle
	waitReason      *waitReason

	// unconvertible is set when an object could not be converted to the storage
	// version: the API server cannot fill its cache of that version any more, and
	// reads of single objects wait for it.
	unconvertible atomic.Bool

	// pageSize is the size of the next page, which an object that fails its list
	// makes smaller, and lastRead is the last object of the page before.
	pageSize   int64
	lastRead   string
	prefetched *prefetch
}

// NewEngine connects a run to its cluster.
func NewEngine(ctx context.Context, config *rest.Config, spec *contract.Spec, tracer tracing.Tracer, metrics *Metrics) (*Engine, error) {
	cluster, err := Connect(config, spec)
	if err != nil {
		return nil, err
	}
	servers, err := cluster.APIServers()
	if err != nil {
		return nil, err
	}
	e := &Engine{
		Spec: *spec, Lister: cluster, Patcher: metrics.Patcher(cluster), Definition: cluster, Discovery: cluster,
		Servers: servers, Checkpoints: metrics.Checkpoints(cluster), Clock: SystemClock{}, Tracer: tracer, Metrics: metrics,
	}
	if spec.RulesetConfigMap != "" {
		if e.Inventory, err = ReadInventory(ctx, cluster, spec.RulesetConfigMap, spec.Resource.Version, e.Clock); err != nil {
			return nil, err
		}
	}
	if spec.RetryConfigMap != "" {
		e.PreviousRun = cluster.PreviousRun(spec.RetryConfigMap)
	}
	return e, nil
}

// Run does the run, or the rest of it, and returns its record. It returns no error for
// a run that ended, however it ended: the record says how. An error means that the run
// has not ended, and that another attempt continues from the checkpoint.
func (e *Engine) Run(ctx context.Context) (contract.Record, error) {
	log := logr.FromContextOrDiscard(ctx).WithValues("policy", e.Pin.Name, "run", e.Spec.Run)
	ctx = logr.NewContext(ctx, log)
	j, err := openJournal(ctx, &e.Spec, e.Inventory.rulesetHash(), e.Checkpoints, e.Clock)
	if err != nil {
		return contract.Record{}, err
	}
	if j.record.Finished() {
		log.Info("The run has already ended; nothing to do", "state", j.record.State, "message", j.record.Message)
		return j.record, nil
	}
	e.matchRuleset(&j.record)
	log.Info("Migrating stored objects", "resource", e.GroupResource().String(), "version", e.Resource.Version, "state", j.record.State)
	e.prepare()
	defer e.cancelPrefetch()
	e.unconvertible.Store(slices.ContainsFunc(j.record.Failures, func(f v1alpha1.MigrationFailure) bool { return f.Reason == ReasonConversionFailed }))
	err = e.finish(ctx, j, e.traced(ctx, j))
	if err == nil {
		summarize(log, j.record)
	}
	return j.record, err
}

// prepare makes what the workers share.
func (e *Engine) prepare() {
	e.throttle = newThrottle(e.Clock, e.Pace, e.Concurrency, e.MaxWritesPerSecond)
	e.throttle.metrics = e.Metrics
	e.waitReason = newWaitReason()
	e.pageSize = e.PageSize
}

// migrate checks the pin again at the end, because a record that says Completed is a
// promise about the definition at that moment.
func (e *Engine) migrate(ctx context.Context, j *journal) error {
	if err := e.checkPin(ctx); err != nil {
		return err
	}
	if err := e.continuePreviousRun(ctx, j); err != nil {
		return err
	}
	if err := phase(ctx, "preflight", j, e.preflight); err != nil {
		return err
	}
	for {
		err := e.rewrite(ctx, j)
		lag := lagError("")
		if !errors.As(err, &lag) {
			return err
		}
		if err := e.repeat(ctx, j, lag); err != nil {
			return err
		}
	}
}

// rewrite passes the barrier, rewrites every object, and verifies that, or does the
// rest of that.
func (e *Engine) rewrite(ctx context.Context, j *journal) error {
	if err := phase(ctx, "barrier", j, e.passBarrier); err != nil {
		return err
	}
	if j.record.State == contract.StateRunning {
		if err := phase(ctx, "pages", j, e.pass); err != nil {
			return err
		}
	}
	if j.record.State == contract.StateAuditing {
		if err := phase(ctx, "audit", j, e.audit); err != nil {
			return err
		}
	}
	if err := phase(ctx, "verify", j, e.verify); err != nil {
		return err
	}
	return e.checkPin(ctx)
}

// repeat starts the run again after objects were written at the old version behind its
// barrier, at most maxRepeats times.
func (e *Engine) repeat(ctx context.Context, j *journal, lag lagError) error {
	if j.record.Repeats == maxRepeats {
		return abortf("%v, also after waiting %s: check that all API servers run and agree on the storage version", lag, e.propagationDelay(j))
	}
	e.previous = nil
	err := j.repeat(ctx)
	logr.FromContextOrDiscard(ctx).Info("Repeating the run with a longer propagation delay", "example", string(lag), "propagationDelay", e.propagationDelay(j).String())
	return err
}

// finish records how the run ended. The record of an interrupted run does not change.
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

func summarize(log logr.Logger, r contract.Record) {
	took := r.CompletionTime.Sub(r.StartTime.Time)
	log = log.WithValues("total", r.Total, "rewritten", r.Rewritten, "current", r.Current, "gone", r.Gone, "failed", r.Failed, "byFallback", r.ByFallback, "verified", r.Verified, "took", took.String())
	if len(r.Failures) > 0 {
		log = log.WithValues("example", r.Failures[0].Object, "reason", r.Failures[0].Reason, "message", r.Failures[0].Message)
	}
	if held := r.Preserved; held != nil {
		log = log.WithValues("withPreserved", held.Objects, "preservedBytes", held.Bytes, "placed", r.Placed, "notPlaced", r.Unplaced)
	}
	switch {
	case r.State == contract.StateAborted:
		log.Info("Migration aborted", "cause", r.Message)
	case r.Complete():
		log.Info("Migration complete: every object is stored at the storage version")
	default:
		log.Info("Migration ended with failed objects: objects at the old version remain")
	}
}

// abortedError is why the run cannot continue, now or after a restart of the pod.
type abortedError string

func (a abortedError) Error() string { return string(a) }

func abortf(format string, args ...any) error { return abortedError(fmt.Sprintf(format, args...)) }

// traced does the rest of the run as one trace.
func (e *Engine) traced(ctx context.Context, j *journal) error {
	return e.Tracer.Trace(ctx, "migrate", func(ctx context.Context) error { return e.migrate(ctx, j) },
		tracing.Policy.String(e.Pin.Name), tracing.Run.String(e.Spec.Run),
		tracing.CRD.String(e.Pin.Name), tracing.CRDGeneration.Int64(e.Pin.Generation))
}

// phase does one part of the run as one span of its trace.
func phase(ctx context.Context, name string, j *journal, do func(context.Context, *journal) error) error {
	return tracing.Span(ctx, name, func(ctx context.Context) error { return do(ctx, j) })
}
