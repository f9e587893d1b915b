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
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// RecordKey is the key of the record in the data of the run's ConfigMap.
const RecordKey = "record.json"

// RecordFormat changes when an older reader would misread the record.
const RecordFormat = 2

// MaxFailures bounds the lists of objects in a record, which are copied to the status of the
// policy.
const MaxFailures = 10

// MaxRepeats is how often a run is repeated before it is aborted.
const MaxRepeats = 3

// State is the progress of a run.
type State string

// The states, in the order of a run.
const (
	// StatePreflight tries the patch on a few objects as a dry run.
	StatePreflight State = "Preflight"
	// StatePropagating waits for writes at the old version to drain.
	StatePropagating State = "Propagating"
	// StateRunning rewrites objects.
	StateRunning State = "Running"
	// StateAuditing patches the objects again that were found current first.
	StateAuditing State = "Auditing"
	// StateVerifying patches a sample, or every object, again.
	StateVerifying State = "Verifying"
	// StateCompleted has processed every object. Some of them may have failed.
	StateCompleted State = "Completed"
	// StateAborted cannot continue; Message says why.
	StateAborted State = "Aborted"
)

// Record is the state and the evidence of a run. It outlives the Job.
type Record struct {
	// Format is the version of this layout.
	Format int `json:"format"`
	// Run identifies the run.
	Run string `json:"run"`
	// CRDUID and CRDGeneration identify the state of the CustomResourceDefinition that the run is
	// for. The record is evidence for this state only.
	CRDUID types.UID `json:"crdUID,omitempty"`
	// CRDGeneration is at least 1.
	CRDGeneration int64 `json:"crdGeneration,omitempty"`
	// StorageVersionHash is that of a resource without a CustomResourceDefinition.
	StorageVersionHash string `json:"storageVersionHash,omitempty"`
	// State is the progress of the run.
	State State `json:"state"`
	// Message says why an aborted run cannot continue.
	Message string `json:"message,omitempty"`
	// Waiting says why the run makes no progress, if it waits.
	Waiting string `json:"waiting,omitempty"`
	// BarrierKind says how the barrier was determined.
	BarrierKind BarrierKind `json:"barrierKind,omitempty"`
	// APIServers is the number of API servers that showed the storage version.
	APIServers int32 `json:"apiServers,omitempty"`
	// Barrier is the resourceVersion at which writes at the old version had drained.
	Barrier string `json:"barrier,omitempty"`
	// Counters include the objects of an unfinished page.
	Counters
	// Checkpoint is where a restarted pod continues.
	Checkpoint Checkpoint `json:"checkpoint"`
	// RetryOf is the previous run of which this one migrates only the failed objects. The counts
	// include those of that run.
	RetryOf string `json:"retryOf,omitempty"`
	// Repeats is how often the run was repeated with a longer propagation delay, because objects
	// were stored at an old version after the barrier.
	Repeats int `json:"repeats,omitempty"`
	// Verification is where a full verification continues.
	Verification string `json:"verification,omitempty"`
	// Verified is the number of objects that did not change when they were patched again. In a resumed
	// run, it includes those that were written after the barrier.
	Verified int64 `json:"verified,omitempty"`
	// RatePerSecond is the recent number of finished objects per second.
	RatePerSecond float64 `json:"ratePerSecond,omitempty"`
	// EstimatedCompletion is when all objects are finished at that rate.
	EstimatedCompletion *metav1.Time `json:"estimatedCompletion,omitempty"`
	// Predicted are objects that the API server refused before the first write: at most
	// MaxFailures.
	Predicted []v1alpha1.MigrationFailure `json:"predicted,omitempty"`
	// Failures are the first MaxFailures objects that failed. Failed counts all of them, and
	// further keys of the ConfigMap list them: see FailuresOf in package migration.
	Failures []v1alpha1.MigrationFailure `json:"failures,omitempty"`
	// Ruleset is the hash of the ruleset by which preserved values were counted, or empty if they
	// were not.
	Ruleset string `json:"ruleset,omitempty"`
	// Preserved is what the annotations of objects preserve, on all finished pages, without failed
	// objects.
	Preserved *conversion.Holdings `json:"preserved,omitempty"`
	// PreservedSince is when that count began, if it began in a previous run.
	PreservedSince *metav1.Time `json:"preservedSince,omitempty"`
	// Placed is the number of objects with preserved values that were restored. Unplaced objects
	// still have preserved values that have a field now: the API server refuses the object at their
	// version, or the schema does not allow them.
	Placed   int64 `json:"placed,omitempty"`
	Unplaced int64 `json:"unplaced,omitempty"`
	// Refused says why, for the first unplaced objects.
	Refused []Refusal `json:"refused,omitempty"`
	// StartTime is when the run started. Restarts do not change it.
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// CompletionTime is when the run completed or aborted.
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
}

// BarrierKind tells how the run knows that API servers write at the storage version.
type BarrierKind string

const (
	// BarrierAllServers means that every API server confirmed it.
	BarrierAllServers BarrierKind = "AllServers"
	// BarrierTime means that not every API server can be reached separately, and that the
	// run waited long enough for all of them.
	BarrierTime BarrierKind = "Time"
)

// Refusal says why preserved values of an object were not restored.
type Refusal struct {
	v1alpha1.MigrationFailure
	// Version is the version of these values.
	Version string `json:"version,omitempty"`
}

// Counters count objects by outcome.
type Counters struct {
	// Total is the number of finished objects plus what the list reports as remaining: an estimate
	// until the run completes.
	Total int64 `json:"total"`
	// Rewritten objects were encoded again by this run.
	Rewritten int64 `json:"rewritten"`
	// Current objects needed no write: they were already stored at the storage version, or clients
	// wrote them several times while the run tried. An object that was rewritten just before the
	// pod crashed is found current by the next pod.
	Current int64 `json:"current"`
	// Gone objects were deleted during the run.
	Gone int64 `json:"gone"`
	// Failed objects could not be rewritten.
	Failed int64 `json:"failed"`
	// ByFallback are the objects among rewritten and current that the API server accepted only by a
	// fallback.
	ByFallback int64 `json:"byFallback,omitempty"`
}

// Done is the number of objects with an outcome.
func (c Counters) Done() int64 { return c.Rewritten + c.Current + c.Gone + c.Failed }

// Known is the number of objects to process, as far as is known: more than Total if others were created meanwhile.
func (c Counters) Known() int64 { return max(c.Total, c.Done()) }

// Checkpoint is the end of the last finished page. An interrupted page is repeated from these
// counters, so that no object counts twice.
type Checkpoint struct {
	// Pages is the number of finished pages.
	Pages int64 `json:"pages"`
	// Continue is the list token of the next page; empty for the first one.
	Continue string `json:"continue,omitempty"`
	Counters
}

// ParseRecord parses a record. It rejects a record that is inconsistent, or has an unknown format
// or state.
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

// ReadRecord reads the record of a run for the manager. If it cannot be read, or belongs to another
// run, ReadRecord returns the record of an aborted run, which proves nothing.
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

// Matches reports whether the record is of this state of a definition.
func (r Record) Matches(pin Pin) bool {
	return r.CRDUID == pin.UID && r.CRDGeneration == pin.Generation && r.StorageVersionHash == pin.StorageVersionHash
}

// Finished reports whether the run has ended and writes nothing more.
func (r Record) Finished() bool { return r.State == StateCompleted || r.State == StateAborted }

// Complete reports whether the run proved that every object is stored at the
// storage version.
func (r Record) Complete() bool { return r.State == StateCompleted && r.Failed == 0 }

// States are all states, in the order of a run.
var States = []State{StatePreflight, StatePropagating, StateRunning, StateAuditing, StateVerifying, StateCompleted, StateAborted}

// CountedFrom returns when the count in Preserved began. It may not include what clients wrote
// after that.
func (r Record) CountedFrom() *metav1.Time { return cmp.Or(r.PreservedSince, r.StartTime) }

func (r Record) validate() error {
	if !slices.Contains(States, r.State) {
		return fmt.Errorf("state %q is unknown", r.State)
	}
	passing := r.State != StatePreflight && r.State != StatePropagating && r.State != StateAborted
	switch {
	case r.Format != RecordFormat:
		return fmt.Errorf("format is %d, this version of conversion-operator reads %d", r.Format, RecordFormat)
	case r.Run == "":
		return errors.New("run is empty")
	case r.CRDUID == "" && r.StorageVersionHash == "":
		return errors.New("crdUID is empty")
	case r.CRDGeneration < 1 && r.StorageVersionHash == "":
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
	case r.Repeats < 0 || r.Repeats > MaxRepeats:
		return fmt.Errorf("it was repeated %d times, at most %d are possible", r.Repeats, MaxRepeats)
	case max(len(r.Failures), len(r.Predicted), len(r.Refused)) > MaxFailures:
		return fmt.Errorf("it lists more than %d failures", MaxFailures)
	case int64(len(r.Failures)) > r.Failed:
		return fmt.Errorf("it lists %d failures but counts %d", len(r.Failures), r.Failed)
	}
	return nil
}
