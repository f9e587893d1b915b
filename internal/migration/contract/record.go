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
	StateSettling State = "Settling"
	// StateRunning rewrites objects.
	StateRunning State = "Running"
	// StateAuditing looks again at objects that were found current early.
	StateAuditing State = "Auditing"
	// StateVerifying looks again at a sample, or at every object.
	StateVerifying State = "Verifying"
	// StateCompleted has seen every object. Some of them may have failed.
	StateCompleted State = "Completed"
	// StateAborted cannot go on; the record's message says why.
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
	// Message says why an aborted run could not go on.
	Message string `json:"message,omitempty"`
	// Waiting says why a run stands still that will go on by itself.
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
	// Checkpoint is where a restarted pod goes on.
	Checkpoint Checkpoint `json:"checkpoint"`
	// RetryOf is the earlier run whose failed objects alone this one migrates: it
	// counts what that one has done as its own.
	RetryOf string `json:"retryOf,omitempty"`
	// Repeats is how often the run began anew with a longer settle time, because
	// a second look found objects that were not current after all.
	Repeats int `json:"repeats,omitempty"`
	// Verification is where a full second pass goes on.
	Verification string `json:"verification,omitempty"`
	// Verified is the number of objects that a second look found unchanged.
	Verified int64 `json:"verified,omitempty"`
	// RatePerSecond is how many objects came to their end per second, recently.
	RatePerSecond float64 `json:"ratePerSecond,omitempty"`
	// EstimatedCompletion is when all objects are done at that rate.
	EstimatedCompletion *metav1.Time `json:"estimatedCompletion,omitempty"`
	// Predicted are objects that the API server refused before the first write:
	// at most ten.
	Predicted []v1alpha1.MigrationFailure `json:"predicted,omitempty"`
	// Failures are the first ten objects that failed. Failed counts them all, and
	// further keys of the ConfigMap list them all: see FailuresOf.
	Failures []v1alpha1.MigrationFailure `json:"failures,omitempty"`
	// Ruleset is the hash of the rules by which it is told what objects hold in
	// annotations; empty where that is not told.
	Ruleset string `json:"ruleset,omitempty"`
	// Preserved is what the objects of all whole pages hold, those that failed aside.
	Preserved *conversion.Holdings `json:"preserved,omitempty"`
	// PreservedSince is when that count began, where it was in an earlier run.
	PreservedSince *metav1.Time `json:"preservedSince,omitempty"`
	// Placed objects held values that have become data. Unplaced ones hold some that have
	// a place and are not there: the API server refuses the object at their version, or
	// their field may not have them.
	Placed   int64 `json:"placed,omitempty"`
	Unplaced int64 `json:"unplaced,omitempty"`
	// Refused says why, of the first ten.
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
	// Rewritten objects were stored anew by this run.
	Rewritten int64 `json:"rewritten"`
	// Current objects needed no write: stored at the storage version already,
	// or written by others again and again while the run tried. An object that was
	// rewritten just before the pod crashed is found current by the next pod.
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

// Checkpoint is the end of the last page that is wholly done. A page that was
// half done is done again from these counters, so no object counts twice.
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
