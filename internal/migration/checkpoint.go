// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
)

// saveInterval is the minimum time between two writes that only show progress within a page.
const saveInterval = time.Second

// journal writes the record of the run, the list of all failures, and the objects to verify again.
// Only one goroutine uses it.
type journal struct {
	record   contract.Record
	failures failureList
	reverify reverifyList
	store    Checkpoints
	clock    Clock
	progress *progress
	// observe is called with the record when it was read, and before it is saved.
	observe func(contract.Record)

	// page are the results of the current page. closePage moves them to the lists, so that a
	// repeated page is not listed twice.
	page  []result
	saved time.Time
	// resumed is set if the record says that an earlier pod, or an earlier run, has passed objects.
	resumed bool
}

// openJournal reads the record of the run, or starts one.
func (e *Engine) openJournal(ctx context.Context) (*journal, error) {
	spec, j := &e.Spec, &journal{store: e.Checkpoints, clock: e.Clock, observe: e.observe}
	var data map[string]string
	err := retry(ctx, e.Clock, func() (err error) {
		data, err = e.Checkpoints.Load(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the checkpoint: %w", err)
	}
	if data[contract.RecordKey] == "" {
		j.record = contract.Record{
			Format: contract.RecordFormat, Run: spec.Run, CRDUID: spec.Pin.UID, CRDGeneration: spec.Pin.Generation, StorageVersionHash: spec.Pin.StorageVersionHash,
			State: contract.StatePreflight, StartTime: j.now(), Ruleset: e.Inventory.rulesetHash(),
		}
		if spec.Preflight == 0 {
			j.record.State = contract.StatePropagating
		}
		j.progress = newProgress(e.Clock, 0)
		return j, j.save(ctx)
	}
	return j, j.resume(spec, data)
}

// resume continues from the data of an earlier pod.
func (j *journal) resume(spec *contract.Spec, data map[string]string) (err error) {
	if j.record, err = contract.ParseRecord([]byte(data[contract.RecordKey])); err != nil {
		return err
	}
	if err = checkRecordRun(j.record, spec); err != nil {
		return err
	}
	if j.failures, err = openFailures(data); err != nil {
		return err
	}
	if j.reverify, err = openReverifyList(data, j.clock.Now()); err != nil {
		return err
	}
	j.resumed = j.record.Barrier != ""
	j.progress = newProgress(j.clock, j.record.Checkpoint.Done())
	j.observe(j.record)
	if j.record.State == contract.StateRunning {
		j.resetPage()
	}
	return nil
}

// setState saves the state of the run.
func (j *journal) setState(ctx context.Context, state contract.State) error {
	j.record.State = state
	return j.save(ctx)
}

// passBarrier saves the barrier. A restarted pod keeps it.
func (j *journal) passBarrier(ctx context.Context, barrier string) error {
	j.record.Barrier = barrier
	j.progress = newProgress(j.clock, 0)
	return j.setState(ctx, contract.StateRunning)
}

// resetPage drops the counts of an unfinished page, which the lists do not include. The total
// remains as an estimate.
func (j *journal) resetPage() {
	total := j.record.Total
	j.record.Counters = j.record.Checkpoint.Counters
	j.record.Total = total
}

// openPage starts to count a page, from the end of the last finished page.
func (j *journal) openPage(page *metav1.PartialObjectMetadataList) {
	j.resetPage()
	known := j.record.Done() + int64(len(page.Items))
	switch {
	case page.RemainingItemCount != nil:
		known += *page.RemainingItemCount
	case page.Continue != "":
		known = max(known, j.record.Total)
	}
	j.record.Total = known
}

// add counts one object, and saves the progress from time to time.
func (j *journal) add(ctx context.Context, r result) error {
	count(&j.record.Counters, r)
	j.page = append(j.page, r)
	return j.saveProgress(ctx)
}

// saveProgress saves the record, unless it was saved less than saveInterval ago.
func (j *journal) saveProgress(ctx context.Context) error {
	if j.clock.Now().Sub(j.saved) < saveInterval {
		return nil
	}
	return j.save(ctx)
}

// setWaiting saves why the run waits. An empty text means that it continues.
func (j *journal) setWaiting(ctx context.Context, text string) error {
	if j.record.Waiting == text {
		return nil
	}
	j.record.Waiting = text
	return j.save(ctx)
}

// closePage saves a finished page as the checkpoint that a restarted pod continues from.
func (j *journal) closePage(ctx context.Context, token string) error {
	data, err := j.flushPage()
	if err != nil {
		return err
	}
	j.record.Checkpoint = contract.Checkpoint{Pages: j.record.Checkpoint.Pages + 1, Continue: token, Counters: j.record.Counters}
	return j.saveWith(ctx, data)
}

// endPass closes the last page and ends the pass in one write. Otherwise a record between the two
// would look like the start of a pass.
func (j *journal) endPass(ctx context.Context) error {
	j.record.Total = j.record.Done()
	j.record.State = contract.StateAuditing
	return j.closePage(ctx, "")
}

// restart discards all pages: the pass starts again with every object.
func (j *journal) restart(ctx context.Context) error {
	data := map[string]string{}
	j.failures.clear(data)
	j.reverify = reverifyList{changed: true}
	if err := j.reverify.write(data); err != nil {
		return err
	}
	j.page = nil
	j.record.Checkpoint = contract.Checkpoint{}
	j.record.Counters = contract.Counters{}
	j.record.Failures = nil
	resetPreserved(&j.record)
	j.record.Verified, j.record.Verification = 0, ""
	j.progress = newProgress(j.clock, 0)
	return j.saveWith(ctx, data)
}

// continueFrom copies the counts and the barrier of a previous run.
func (j *journal) continueFrom(ctx context.Context, previous contract.Record) error {
	j.resumed = true
	j.record.RetryOf = previous.Run
	j.record.Barrier, j.record.BarrierKind, j.record.APIServers = previous.Barrier, previous.BarrierKind, previous.APIServers
	j.record.Counters = previous.Counters
	j.record.Failed = 0
	continuePreserved(&j.record, &previous)
	j.record.Checkpoint = contract.Checkpoint{Counters: j.record.Counters}
	j.progress = newProgress(j.clock, j.record.Done())
	return j.setState(ctx, contract.StateRunning)
}

// repeat resets the run to before its barrier.
func (j *journal) repeat(ctx context.Context) error {
	j.resumed = false
	j.record.RetryOf = ""
	j.record.Repeats++
	j.record.State = contract.StatePropagating
	j.record.Barrier = ""
	return j.restart(ctx)
}

// complete ends the run.
func (j *journal) complete(ctx context.Context) error {
	j.record.CompletionTime = j.now()
	return j.setState(ctx, contract.StateCompleted)
}

// abort ends the run for good.
func (j *journal) abort(ctx context.Context, reason string) error {
	data, err := j.flushPage()
	if err != nil {
		return err
	}
	j.record.State = contract.StateAborted
	j.record.Message = truncate(reason, maxMessage)
	j.record.CompletionTime = j.now()
	return j.saveWith(ctx, data)
}

// flushPage moves the results of the open page into the lists, and returns the data to
// save.
func (j *journal) flushPage() (map[string]string, error) {
	data := map[string]string{}
	var failures []v1alpha1.MigrationFailure
	for i, r := range j.page {
		if r.outcome == failed {
			failures = append(failures, r.failure())
		}
		j.reverify.add(j.record.Run, r, j.record.Checkpoint.Done()+int64(i), j.clock.Now())
	}
	countPreserved(&j.record, j.page)
	j.page = nil
	room := contract.MaxFailures - len(j.record.Failures)
	j.record.Failures = append(j.record.Failures, failures[:min(room, len(failures))]...)
	if err := j.failures.add(failures, data); err != nil {
		return nil, err
	}
	return data, j.reverify.write(data)
}

func (j *journal) save(ctx context.Context) error {
	return j.saveWith(ctx, nil)
}

// saveWith writes the record and other keys. Without the write a restarted pod would repeat or miss
// work, so an error stops the run.
func (j *journal) saveWith(ctx context.Context, data map[string]string) error {
	j.record.RatePerSecond, j.record.EstimatedCompletion = j.progress.forecast(j.record)
	if j.record.Finished() {
		j.record.Waiting = ""
	}
	j.observe(j.record)
	text, err := json.Marshal(j.record)
	if err != nil {
		return fmt.Errorf("cannot encode the migration record: %w", err)
	}
	all := map[string]string{contract.RecordKey: string(text)}
	maps.Copy(all, data)
	if err := retry(ctx, j.clock, func() error { return j.store.Save(ctx, all) }); err != nil {
		return fmt.Errorf("cannot write the checkpoint: %w", err)
	}
	j.saved = j.clock.Now()
	return nil
}

// now returns the time in whole seconds, as it is encoded in the record.
func (j *journal) now() *metav1.Time {
	now := metav1.NewTime(j.clock.Now()).Rfc3339Copy()
	return &now
}

// checkRecordRun returns an error if the record belongs to another run, or to another state of the
// CustomResourceDefinition. The record of another run may be its only migration evidence and must not be
// overwritten; the record of another state proves nothing about this one.
func checkRecordRun(r contract.Record, spec *contract.Spec) error {
	switch {
	case r.Run != spec.Run:
		return fmt.Errorf("the checkpoint holds the record of run %q, this is run %q: every run needs a ConfigMap of its own", r.Run, spec.Run)
	case !r.Matches(spec.Pin) && spec.Pin.IsBuiltIn():
		return fmt.Errorf("the record of run %q is of another storage version of %s: start another run", r.Run, spec.Pin.Name)
	case !r.Matches(spec.Pin):
		return fmt.Errorf("the record of run %q is of CustomResourceDefinition uid %s, generation %d, this run is for %s, uid %s, generation %d: start another run",
			r.Run, r.CRDUID, r.CRDGeneration, spec.Pin.Name, spec.Pin.UID, spec.Pin.Generation)
	}
	return nil
}

// count adds one object to the counters.
func count(c *contract.Counters, r result) {
	if r.path != "" {
		c.ByFallback++
	}
	switch r.outcome {
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
