// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/operator/tracing"
)

// Options say how objects are migrated. The zero value is not valid.
type Options struct {
	// Pace, Concurrency, MaxWritesPerSecond, Verify and Fallback are those of spec.migration of a
	// policy. Concurrency and MaxWritesPerSecond hold for all resources together.
	Pace               v1alpha1.MigrationPace
	Concurrency        int
	MaxWritesPerSecond int
	Verify             v1alpha1.MigrationVerification
	Fallback           []v1alpha1.MigrationFallback
	// PropagationDelay is how long API servers may still write at the old version.
	PropagationDelay time.Duration
	// KeepStoredVersions leaves status.storedVersions unchanged.
	KeepStoredVersions bool
	// RecordNamespace is the namespace of the ConfigMaps with records, and RecordFile the file that
	// is used instead of them, or nil.
	RecordNamespace string
	RecordFile      *File
}

// Migrator migrates targets.
type Migrator struct {
	Options
	Config *rest.Config
	Client client.Client
	Core   kubernetes.Interface
	// Observe is called with every state of the record of a resource, and Warn with every error of a
	// list, which the run then tries again. Both are called by several goroutines.
	Observe func(resource string, record contract.Record)
	Warn    func(resource string, err error)
}

// resourcesAtOnce is how many resources are migrated at a time. Most of them have few objects, so
// that their runs only wait for the propagation delay, each once or twice.
const resourcesAtOnce = 50

// State says how a migration ended.
type State string

// The states of a Result.
const (
	// Complete means that every object is proven to be stored at the storage version.
	Complete State = "Complete"
	// Failed means that some objects could not be rewritten.
	Failed State = "Failed"
	// Aborted means that the run cannot continue. Another run starts with the first object.
	Aborted State = "Aborted"
	// Interrupted means that the run has not ended. The next run begins with the first object, and has
	// less to write.
	Interrupted State = "Interrupted"
	// NotStarted means that the run could not start.
	NotStarted State = "NotStarted"
)

// Result is how the migration of one resource ended. Its JSON form is stable.
type Result struct {
	Resource string `json:"resource"`
	State    State  `json:"state"`
	// Message says why the state is not Complete, or why storedVersions was not pruned.
	Message string `json:"message,omitempty"`
	// StorageVersion of a custom resource.
	StorageVersion string `json:"storageVersion,omitempty"`
	Run            string `json:"run,omitempty"`
	// Record names what has the record of the run.
	Record string `json:"record,omitempty"`
	// Barrier says how the barrier was determined.
	Barrier    contract.BarrierKind `json:"barrier,omitempty"`
	APIServers int32                `json:"apiServers,omitempty"`
	contract.Counters
	Verified int64 `json:"verified"`
	// Failures are the first objects that failed.
	Failures []v1alpha1.MigrationFailure `json:"failures,omitempty"`
	// Pruned are the versions that were removed from status.storedVersions.
	Pruned []string `json:"pruned,omitempty"`
}

// Migrate migrates the targets, several at a time, and returns a result for each of them.
func (m *Migrator) Migrate(ctx context.Context, targets []Target) []Result {
	results := make([]Result, len(targets))
	shared := m.newLimits()
	var runs errgroup.Group
	runs.SetLimit(resourcesAtOnce)
	for i := range targets {
		runs.Go(func() error {
			results[i] = m.migrate(ctx, &targets[i], shared)
			return nil
		})
	}
	_ = runs.Wait() // results have the errors
	return results
}

// migrate migrates one resource, and prunes its stored versions.
func (m *Migrator) migrate(ctx context.Context, target *Target, shared *limits) Result {
	result := Result{Resource: target.Name(), State: NotStarted, StorageVersion: target.StorageVersion()}
	record := m.record(target)
	result.Record = record.String()
	held, release, err := hold(ctx, record)
	if err != nil {
		result.Message = err.Error()
		return result
	}
	m.run(held, target, record, shared, &result)
	if err := release(); err != nil && !errors.As(err, new(takenError)) && result.Message == "" {
		result.Message = fmt.Sprintf("%s was not released, which delays the next run: %v", record, err)
	}
	return result
}

// run does another run, and prunes. Runs are not continued: a client that may write a record could claim
// that objects were rewritten.
func (m *Migrator) run(ctx context.Context, target *Target, record record, shared *limits, result *Result) {
	if err := record.reset(ctx); err != nil {
		err = fmt.Errorf("cannot clear the record of the previous run, %s: %w", record, err)
		result.Message = reasonOf(ctx, err).Error()
		return
	}
	engine, err := m.engine(ctx, target, randomID(), unread{record}, shared)
	if err != nil {
		result.Message = err.Error()
		return
	}
	engine.Observe = func(r contract.Record) { m.Observe(result.Resource, r) }
	lister := &watchedLister{Lister: engine.Lister, warn: func(err error) { m.Warn(result.Resource, err) }}
	engine.Lister = lister
	ended, err := engine.Run(ctx)
	result.fill(&ended)
	switch {
	case err != nil:
		result.State, result.Message = Interrupted, reasonOf(ctx, err).Error()
		switch lost := lister.last(); {
		case ended.Waiting != "":
			result.Message += "; it was waiting: " + ended.Waiting
		case lost != nil && ctx.Err() != nil:
			result.Message += "; the last list of objects failed: " + lost.Error()
		}
	case ended.State == contract.StateAborted:
		result.State, result.Message = Aborted, ended.Message
	case !ended.Complete():
		result.State = Failed
	default:
		result.State = Complete
		result.Pruned, err = m.prune(ctx, target)
		if err != nil {
			result.Message = "every object is rewritten, but " + err.Error()
		}
	}
}

// errInterrupted is the reason if a signal ended the context.
var errInterrupted = errors.New("interrupted")

// reasonOf prefers the reason why the context ended.
func reasonOf(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return errInterrupted
}

func (r *Result) fill(record *contract.Record) {
	r.Run, r.Counters, r.Verified, r.Failures = record.Run, record.Counters, record.Verified, record.Failures
	r.Barrier, r.APIServers = record.BarrierKind, record.APIServers
}

// record returns the record of a target.
func (m *Migrator) record(target *Target) record {
	if m.RecordFile != nil {
		return m.RecordFile.of(target.Name())
	}
	return &configMap{core: m.Core.CoreV1(), namespace: m.RecordNamespace,
		name: ConfigMapName(target.Name()), holder: thisProcess(), observation: observation}
}

// engine returns the engine of a run.
func (m *Migrator) engine(ctx context.Context, target *Target, run string, store migration.Checkpoints, shared *limits) (*migration.Engine, error) {
	engine, err := migration.NewEngine(ctx, m.Config, m.spec(target, run), tracing.Tracer{}, nil)
	if err != nil {
		return nil, err
	}
	engine.Checkpoints, engine.Patcher = store, &limitedPatcher{engine.Patcher, shared}
	return engine, nil
}

func (m *Migrator) spec(target *Target, run string) *contract.Spec {
	old, fallback := target.oldVersions(), m.Fallback
	if len(old) == 0 {
		fallback = slices.DeleteFunc(slices.Clone(fallback), func(each v1alpha1.MigrationFallback) bool { return each == v1alpha1.MigrationFallbackOldVersion })
	}
	return &contract.Spec{
		FormatVersion: contract.SpecFormat, Run: run, Pin: target.pin(), Resource: metav1.GroupVersionResource(target.Resource),
		Namespace: m.RecordNamespace, RecordConfigMap: ConfigMapName(target.Name()),
		PropagationDelay: metav1.Duration{Duration: m.PropagationDelay},
		Preflight:        contract.DefaultPreflight, PageSize: contract.DefaultPageSize,
		Concurrency: m.Concurrency, Pace: m.Pace, Verify: m.Verify, Fallback: fallback, OldVersions: old,
	}
}

// limits are shared by the patches of all resources.
type limits struct {
	inFlight chan struct{}
	rate     *rate.Limiter
}

func (m *Migrator) newLimits() *limits {
	return &limits{inFlight: make(chan struct{}, m.Concurrency), rate: migration.NewRateLimiter(m.MaxWritesPerSecond)}
}

// limitedPatcher sends patches within the limits.
type limitedPatcher struct {
	migration.Patcher
	*limits
}

// Patch implements migration.Patcher.
func (p *limitedPatcher) Patch(ctx context.Context, patch migration.Patch) (*metav1.PartialObjectMetadata, error) {
	select {
	case p.inFlight <- struct{}{}:
		defer func() { <-p.inFlight }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := p.rate.Wait(ctx); err != nil {
		return nil, err
	}
	return p.Patcher.Patch(ctx, patch)
}

// watchedLister reports the errors of lists.
type watchedLister struct {
	migration.Lister
	warn func(error)

	mu  sync.Mutex
	err error
}

// List implements migration.Lister.
func (l *watchedLister) List(ctx context.Context, scope migration.ListScope, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	page, err := l.Lister.List(ctx, scope, options)
	if ctx.Err() != nil {
		return page, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err = err; err != nil {
		l.warn(err)
	}
	return page, err
}

// last returns the error of the last list, or nil.
func (l *watchedLister) last() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// unread is the record of a run. The engine never sees what is stored.
type unread struct{ record }

// Load implements migration.Checkpoints.
func (unread) Load(context.Context) (map[string]string, error) { return nil, nil }
