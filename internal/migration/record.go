// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// RecordKey is the key of the record in the data of the run's ConfigMap.
const RecordKey = "record.json"

const (
	// recordFormat changes when an older reader would misread the record.
	recordFormat = 1
	// maxFailures keeps the record small; the log names every failed object.
	maxFailures = 10
	// maxMessage is in bytes. Validation messages can repeat a whole object,
	// and ten of them must fit into a ConfigMap and a status.
	maxMessage = 1024
)

// State is how far a run is.
type State string

const (
	// StateSettling waits for writes at the old version to drain.
	StateSettling State = "Settling"
	// StateRunning rewrites objects.
	StateRunning State = "Running"
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
	// Barrier is the resourceVersion at which writes at the old version had
	// drained.
	Barrier string `json:"barrier,omitempty"`
	// Counters show the progress, objects of an unfinished page included.
	Counters
	// Checkpoint is where a restarted pod goes on.
	Checkpoint Checkpoint `json:"checkpoint"`
	// Failures are the first ten objects that failed. Failed counts them all.
	Failures []Failure `json:"failures,omitempty"`
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
}

// Done is the number of objects with an outcome.
func (c Counters) Done() int64 { return c.Rewritten + c.Current + c.Gone + c.Failed }

// add counts one more object.
func (c *Counters) add(o outcome) {
	switch o {
	case rewritten:
		c.Rewritten++
	case current:
		c.Current++
	case gone:
		c.Gone++
	case failed:
		c.Failed++
	}
}

// Checkpoint is the end of the last page that is wholly done. A page that was
// half done is done again from these counters, so no object counts twice.
type Checkpoint struct {
	// Pages is the number of pages done.
	Pages int64 `json:"pages"`
	// Continue is the list's token for the next page; empty starts the pass.
	Continue string `json:"continue,omitempty"`
	Counters
}

// Failure is one object that could not be rewritten.
type Failure struct {
	// Object is its name, or namespace/name.
	Object string `json:"object"`
	// Message is the API server's answer.
	Message string `json:"message"`
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

// Finished reports whether the run has ended: nothing will be written any more.
func (r Record) Finished() bool { return r.State == StateCompleted || r.State == StateAborted }

// Complete reports whether the run proved that every object is stored at the
// storage version.
func (r Record) Complete() bool { return r.State == StateCompleted && r.Failed == 0 }

func (r Record) validate() error {
	switch r.State {
	case StateSettling, StateRunning, StateCompleted, StateAborted:
	default:
		return fmt.Errorf("state %q is unknown", r.State)
	}
	passing := r.State == StateRunning || r.State == StateCompleted
	switch {
	case r.Format != recordFormat:
		return fmt.Errorf("format is %d, this version of conversion-operator reads %d", r.Format, recordFormat)
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
	case int64(len(r.Failures)) > r.Failed:
		return fmt.Errorf("it lists %d failures but counts %d", len(r.Failures), r.Failed)
	}
	return nil
}

// belongsTo refuses a run that the record is not of. The record of another run
// may be the only proof of what that run did; the record of another state of the
// CustomResourceDefinition proves nothing about this one.
func (r Record) belongsTo(o Options) error {
	switch {
	case r.Run != o.Run:
		return fmt.Errorf("the checkpoint holds the record of run %q, this is run %q: every run needs a ConfigMap of its own", r.Run, o.Run)
	case r.CRDUID != o.Pin.UID || r.CRDGeneration != o.Pin.Generation:
		return fmt.Errorf("the record of run %q is of CustomResourceDefinition uid %s, generation %d, this run is for %s, uid %s, generation %d: start another run",
			r.Run, r.CRDUID, r.CRDGeneration, o.Pin.Name, o.Pin.UID, o.Pin.Generation)
	}
	return nil
}

// shorten cuts a message to what a record can hold.
func shorten(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	const ellipsis = "…"
	return strings.ToValidUTF8(message[:maxMessage-len(ellipsis)], "") + ellipsis
}
