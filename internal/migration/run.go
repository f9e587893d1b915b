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
	"github.com/conversion-operator/conversion-operator/internal/operator/tracing"
)

// Engine does one run. All exported fields but PreviousRun, Tracer, Metrics, Observe and Inventory
// are required.
type Engine struct {
	contract.Spec
	Lister      Lister
	Patcher     Patcher
	Definition  Definition
	Discovery   Discovery
	Servers     Servers
	Checkpoints Checkpoints
	Clock       Clock
	// PreviousRun is the checkpoint of a run whose failed objects are retried, if possible.
	PreviousRun Checkpoints
	// Tracer of the run and its phases.
	Tracer tracing.Tracer
	// Metrics count objects and patches, and follow the record.
	Metrics *Metrics
	// Observe is called with every state of the record.
	Observe func(contract.Record)
	// Inventory reads preserved values. If it is nil, they are neither counted nor restored.
	Inventory *Inventory

	previous        *previousRun
	pinCache        pinCache
	breaker         breaker
	probeCandidates probeCandidates
	throttle        *throttle
	waitReason      *waitReason

	// unconvertible is set after an object could not be converted to the storage version. The API
	// server can then no longer fill its cache of that version, and reads of single objects would
	// wait for it.
	unconvertible atomic.Bool

	// pageSize is the size of the next page, which is reduced to find an object that fails its
	// list. lastRead is the last object of the previous page.
	pageSize   int64
	lastRead   string
	prefetched *prefetch
}

// NewEngine returns an Engine that is connected to the cluster.
func NewEngine(ctx context.Context, config *rest.Config, spec *contract.Spec, tracer tracing.Tracer, metrics *Metrics) (*Engine, error) {
	cluster, err := Connect(config, spec)
	if err != nil {
		return nil, err
	}
	e := &Engine{
		Spec: *spec, Lister: cluster, Patcher: cluster, Definition: cluster, Discovery: cluster,
		Servers: cluster, Checkpoints: cluster, Clock: SystemClock{}, Tracer: tracer, Metrics: metrics,
	}
	if spec.RulesetConfigMap != "" {
		if e.Inventory, err = ReadInventory(ctx, cluster, spec, e.Clock); err != nil {
			return nil, err
		}
	}
	if spec.RetryConfigMap != "" {
		e.PreviousRun = cluster.PreviousRun(spec.RetryConfigMap)
	}
	return e, nil
}

// Run does the run, or the rest of it, and returns its record. The error is nil if the run ended,
// whether it completed or aborted: the record says which. An error means that the run has not
// ended; the next Run continues from the checkpoint.
func (e *Engine) Run(ctx context.Context) (contract.Record, error) {
	log := logr.FromContextOrDiscard(ctx).WithValues("policy", e.Pin.Name, "run", e.Spec.Run)
	ctx = logr.NewContext(ctx, log)
	j, err := e.openJournal(ctx)
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
	e.unconvertible.Store(slices.ContainsFunc(j.record.Failures, func(f v1alpha1.MigrationFailure) bool { return f.Reason == v1alpha1.FailureConversionFailed }))
	err = e.finish(ctx, j, e.traced(ctx, j))
	if err == nil {
		summarize(log, j.record)
	}
	return j.record, err
}

// prepare creates what the workers share.
func (e *Engine) prepare() {
	e.throttle = newThrottle(e.Clock, e.Pace, e.Concurrency, e.MaxWritesPerSecond)
	e.throttle.metrics = e.Metrics
	e.waitReason = newWaitReason()
	e.pageSize = e.PageSize
}

// observe shows the record to the metrics and to Observe.
func (e *Engine) observe(record contract.Record) {
	e.Metrics.expose(&record)
	if e.Observe != nil {
		e.Observe(record)
	}
}

// migrate checks the pin also at the end, because a Completed record asserts that the definition
// has not changed.
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

// rewrite does the remaining steps from the barrier to the verification.
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

// repeat restarts the run after objects were written at the old version after its barrier, at most
// contract.MaxRepeats times.
func (e *Engine) repeat(ctx context.Context, j *journal, lag lagError) error {
	if j.record.Repeats == contract.MaxRepeats {
		return abortf("%v, also after waiting %s: check that all API servers run and agree on the storage version", lag, e.propagationDelay(j))
	}
	e.previous = nil
	err := j.repeat(ctx)
	logr.FromContextOrDiscard(ctx).Info("Repeating the run with a longer propagation delay", "example", string(lag), "propagationDelay", e.propagationDelay(j).String())
	return err
}

// finish records how the run ended. It does not change the record of an interrupted run.
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
	if preserved := r.Preserved; preserved != nil {
		log = log.WithValues("withPreserved", preserved.Objects, "preservedBytes", preserved.Bytes, "placed", r.Placed, "notPlaced", r.Unplaced)
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

// abortedError is the reason why neither this pod nor another one can continue the run.
type abortedError string

func (a abortedError) Error() string { return string(a) }

func abortf(format string, args ...any) error { return abortedError(fmt.Sprintf(format, args...)) }

// traced runs migrate in a trace.
func (e *Engine) traced(ctx context.Context, j *journal) error {
	return e.Tracer.Trace(ctx, "migrate", func(ctx context.Context) error { return e.migrate(ctx, j) },
		tracing.Policy.String(e.Pin.Name), tracing.Run.String(e.Spec.Run),
		tracing.CRD.String(e.Pin.Name), tracing.CRDGeneration.Int64(e.Pin.Generation))
}

// phase runs one step of the run in a span of its trace.
func phase(ctx context.Context, name string, j *journal, do func(context.Context, *journal) error) error {
	return tracing.Span(ctx, name, func(ctx context.Context) error { return do(ctx, j) })
}
