// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// RecordKey is the key of the record in the data of the run's ConfigMap.
const RecordKey = "record.json"

const (
	// RecordFormat changes when an older reader would misread the record.
	RecordFormat = 2
	// oldFormat knew no audit, no verification and no reasons. It is read: what it
	// says still holds.
	oldFormat = 1
)

// MaxFailures bounds the lists of objects in a record, which become lists of the
// policy's status.
const MaxFailures = 10

// State is how far a run is.
type State string

// The states in the order of a run.
const (
	// StatePreflight tries the patch on a few objects without writing.
	StatePreflight State = "Preflight"
	// StateSettling waits for writes at the old version to drain.
	StateSettling State = "Propagating"
	// StateRunning rewrites objects.
	StateRunning State = "Running"
	// StateAuditing patches again the objects that were found current first.
	StateAuditing State = "Auditing"
	// StateVerifying patches a sample, or every object, again.
	StateVerifying State = "Verifying"
	// StateCompleted has seen every object. Some of them may have failed.
	StateCompleted State = "Completed"
	// StateAborted cannot continue; the record's message says why.
	StateAborted State = "Aborted"
)

// Record is all that is known of a run. It outlives the Job.
type Record struct {
	// Format is the version of this layout.
	Format int `json:"format"`
	// Run identifies the run.
	Run string `json:"run"`
	// CRDUID and CRDGeneration are the state of the CustomResourceDefinition that
	// the run is made for, and that the record proves something about.
	CRDUID types.UID `json:"crdUID"`
	// CRDGeneration is at least 1.
	CRDGeneration int64 `json:"crdGeneration"`
	// State is how far the run is.
	State State `json:"state"`
	// Message says why an aborted run cannot continue.
	Message string `json:"message,omitempty"`
	// Waiting says why a run makes no progress, while it waits for something.
	Waiting string `json:"waiting,omitempty"`
	// BarrierKind is what the barrier rests on.
	BarrierKind v1alpha1.BarrierKind `json:"barrierKind,omitempty"`
	// APIServers is the number of API servers that showed the storage version.
	APIServers int32 `json:"apiServers,omitempty"`
	// Barrier is the resourceVersion at which writes at the old version had
	// drained.
	Barrier string `json:"barrier,omitempty"`
	// Counters show the progress, objects of an unfinished page included.
	Counters
	// Checkpoint is where a restarted pod continues.
	Checkpoint Checkpoint `json:"checkpoint"`
	// RetryOf is the previous run of which this one migrates only the failed objects:
	// its counts include those of that run.
	RetryOf string `json:"retryOf,omitempty"`
	// Repeats is how often the run was repeated with a longer propagation delay, because
	// the verification found objects that were stored at an old version after the
	// barrier.
	Repeats int `json:"repeats,omitempty"`
	// Verification is where a full verification continues.
	Verification string `json:"verification,omitempty"`
	// Verified is the number of objects that did not change when they were patched
	// again.
	Verified int64 `json:"verified,omitempty"`
	// RatePerSecond is how many objects came to their end per second, recently.
	RatePerSecond float64 `json:"ratePerSecond,omitempty"`
	// EstimatedCompletion is when all objects are done at that rate.
	EstimatedCompletion *metav1.Time `json:"estimatedCompletion,omitempty"`
	// Predicted are objects that the API server refused before the first write: at most
	// ten.
	Predicted []v1alpha1.MigrationFailure `json:"predicted,omitempty"`
	// Failures are the first ten objects that failed. Failed counts them all, and
	// further keys of the ConfigMap list them all: see FailuresOf.
	Failures []v1alpha1.MigrationFailure `json:"failures,omitempty"`
	// Ruleset is the hash of the ruleset by which preserved values were counted; empty
	// where they were not.
	Ruleset string `json:"ruleset,omitempty"`
	// Preserved is what the annotations of the objects of all whole pages preserve,
	// without the failed objects.
	Preserved *conversion.Holdings `json:"preserved,omitempty"`
	// PreservedSince is when that count began, if that was in a previous run.
	PreservedSince *metav1.Time `json:"preservedSince,omitempty"`
	// Placed objects had preserved values that were restored. Unplaced objects still
	// have some that have a field: the API server refuses the object at their version,
	// or the field does not allow them.
	Placed   int64 `json:"placed,omitempty"`
	Unplaced int64 `json:"unplaced,omitempty"`
	// Refused says why, for the first ten of the unplaced objects.
	Refused []v1alpha1.MigrationFailure `json:"refused,omitempty"`
	// StartTime is when the run started, restarts not counted.
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// CompletionTime is when the run completed or aborted.
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
}

// Counters count objects by outcome.
type Counters struct {
	// Total is the objects done plus what the list said was left: an estimate
	// until the run completes.
	Total int64 `json:"total"`
	// Rewritten objects were encoded again by this run.
	Rewritten int64 `json:"rewritten"`
	// Current objects needed no write: stored at the storage version already, or written
	// by clients several times while the run tried. An object that was rewritten just
	// before the pod crashed is found current by the next pod.
	Current int64 `json:"current"`
	// Gone objects were deleted meanwhile.
	Gone int64 `json:"gone"`
	// Failed objects could not be rewritten.
	Failed int64 `json:"failed"`
	// ByFallback are the objects among rewritten and current that the API server
	// accepted only on another path than their own.
	ByFallback int64 `json:"byFallback,omitempty"`
}

// Done is the number of objects with an outcome.
func (c Counters) Done() int64 { return c.Rewritten + c.Current + c.Gone + c.Failed }

// Checkpoint is the end of the last whole page. A page that was interrupted is
// repeated from these counters, so no object counts twice.
type Checkpoint struct {
	// Pages is the number of pages done.
	Pages int64 `json:"pages"`
	// Continue is the list's token for the next page; empty starts the pass.
	Continue string `json:"continue,omitempty"`
	Counters
}

// ParseRecord reads a record and refuses one that contradicts itself, is of a
// format it does not know, or has a state it does not know.
func ParseRecord(data []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return Record{}, fmt.Errorf("the migration record is not readable: %w", err)
	}
	if err := r.validate(); err != nil {
		return Record{}, fmt.Errorf("the migration record of run %q is not usable: %w", r.Run, err)
	}
	return r, nil
}

// ReadRecord reads the record of a run for the manager. A record that cannot be read,
// or that is of another run, proves nothing: it reads as that of an aborted run.
func ReadRecord(run, text string) *Record {
	record, err := ParseRecord([]byte(text))
	switch {
	case err != nil:
		return &Record{Run: run, State: StateAborted, Message: err.Error()}
	case record.Run != run:
		return &Record{Run: run, State: StateAborted, Message: "the record is of run " + record.Run}
	}
	return &record
}

// Finished reports whether the run has ended: nothing will be written any more.
func (r Record) Finished() bool { return r.State == StateCompleted || r.State == StateAborted }

// Complete reports whether the run proved that every object is stored at the
// storage version.
func (r Record) Complete() bool { return r.State == StateCompleted && r.Failed == 0 }

// States are all of them, in the order of a run.
var States = []State{StatePreflight, StateSettling, StateRunning, StateAuditing, StateVerifying, StateCompleted, StateAborted}

// CountedFrom is when the count in Preserved began. What clients wrote from then on may
// not be in it.
func (r Record) CountedFrom() *metav1.Time { return cmp.Or(r.PreservedSince, r.StartTime) }

func (r Record) validate() error {
	if !slices.Contains(States, r.State) {
		return fmt.Errorf("state %q is unknown", r.State)
	}
	passing := r.State != StatePreflight && r.State != StateSettling && r.State != StateAborted
	switch {
	case r.Format != RecordFormat && r.Format != oldFormat:
		return fmt.Errorf("format is %d, this version of conversion-operator reads %d and %d", r.Format, oldFormat, RecordFormat)
	case r.Run == "":
		return errors.New("run is empty")
	case r.CRDUID == "":
		return errors.New("crdUID is empty")
	case r.CRDGeneration < 1:
		return fmt.Errorf("crdGeneration is %d, must be at least 1", r.CRDGeneration)
	case r.StartTime == nil:
		return errors.New("startTime is empty")
	case passing && r.Barrier == "":
		return fmt.Errorf("state is %s but barrier is empty", r.State)
	case r.Finished() && r.CompletionTime == nil:
		return fmt.Errorf("state is %s but completionTime is empty", r.State)
	case r.State == StateAborted && r.Message == "":
		return errors.New("state is Aborted but message is empty")
	case r.State == StateCompleted && r.Done() != r.Total:
		return fmt.Errorf("state is Completed but %d of %d objects are done", r.Done(), r.Total)
	case r.ByFallback > r.Rewritten+r.Current:
		return fmt.Errorf("it counts %d objects by fallback, and %d that were accepted", r.ByFallback, r.Rewritten+r.Current)
	case max(len(r.Failures), len(r.Predicted), len(r.Refused)) > MaxFailures:
		return fmt.Errorf("it lists more than %d failures", MaxFailures)
	case int64(len(r.Failures)) > r.Failed:
		return fmt.Errorf("it lists %d failures but counts %d", len(r.Failures), r.Failed)
	}
	return nil
}
