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

// saveInterval spaces the writes that only show progress inside a page.
const saveInterval = time.Second

// journal writes the run's record and what belongs to it: the list of all failures,
// and the objects to verify again. One goroutine uses it.
type journal struct {
	record   contract.Record
	failures failureList
	reverify reverifyList
	store    Checkpoints
	clock    Clock
	progress *progress

	// page are the results of the open page. The lists above take them when it is
	// closed, so that a page that is repeated does not enter them twice.
	page  []result
	saved time.Time
}

// openJournal reads the record of the run, or starts one.
func openJournal(ctx context.Context, spec *contract.Spec, ruleset string, store Checkpoints, clock Clock) (*journal, error) {
	j := &journal{store: store, clock: clock}
	var data map[string]string
	err := patiently(ctx, clock, func() (err error) {
		data, err = store.Load(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the checkpoint: %w", err)
	}
	if data[contract.RecordKey] == "" {
		j.record = contract.Record{
			Format: contract.RecordFormat, Run: spec.Run, CRDUID: spec.Pin.UID, CRDGeneration: spec.Pin.Generation,
			State: contract.StatePreflight, StartTime: j.now(), Ruleset: ruleset,
		}
		if spec.Preflight == 0 {
			j.record.State = contract.StateSettling
		}
		j.progress = newProgress(clock, 0)
		return j, j.save(ctx)
	}
	return j, j.resume(spec, data)
}

// resume continues what an earlier pod saved. A record of the previous format becomes
// one of this format with the next write.
func (j *journal) resume(spec *contract.Spec, data map[string]string) (err error) {
	if j.record, err = contract.ParseRecord([]byte(data[contract.RecordKey])); err != nil {
		return err
	}
	if err = belongsTo(j.record, spec); err != nil {
		return err
	}
	if j.failures, err = openFailures(data); err != nil {
		return err
	}
	if j.reverify, err = openReverifyList(data); err != nil {
		return err
	}
	j.progress = newProgress(j.clock, j.record.Checkpoint.Done())
	if !j.record.Finished() {
		j.record.Format = contract.RecordFormat
	}
	if j.record.State == contract.StateRunning {
		j.resetPage()
	}
	return nil
}

// setState records that the run is in another state.
func (j *journal) setState(ctx context.Context, state contract.State) error {
	j.record.State = state
	return j.save(ctx)
}

// passBarrier records the barrier, which a restarted pod keeps.
func (j *journal) passBarrier(ctx context.Context, barrier string) error {
	j.record.Barrier = barrier
	j.progress = newProgress(j.clock, 0)
	return j.setState(ctx, contract.StateRunning)
}

// resetPage drops the counts of a page that was not finished: the lists have nothing
// of it. The total stays, as an estimate.
func (j *journal) resetPage() {
	total := j.record.Total
	j.record.Counters = j.record.Checkpoint.Counters
	j.record.Total = total
}

// openPage starts counting a page, from where the last whole page ended.
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

// setWaiting records why the run waits, or, with an empty text, that it continues.
func (j *journal) setWaiting(ctx context.Context, text string) error {
	if j.record.Waiting == text {
		return nil
	}
	j.record.Waiting = text
	return j.save(ctx)
}

// closePage makes a finished page the base that a restarted pod starts from.
func (j *journal) closePage(ctx context.Context, token string) error {
	data, err := j.flushPage()
	if err != nil {
		return err
	}
	j.record.Checkpoint = contract.Checkpoint{Pages: j.record.Checkpoint.Pages + 1, Continue: token, Counters: j.record.Counters}
	return j.saveWith(ctx, data)
}

// endPass closes the last page and the pass in one write, so that no record in
// between looks like the start of a pass.
func (j *journal) endPass(ctx context.Context) error {
	j.record.Total = j.record.Done()
	j.record.State = contract.StateAuditing
	return j.closePage(ctx, "")
}

// restart forgets all pages: the pass starts again and meets every object again.
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
	forgetPreserved(&j.record)
	j.record.Verified, j.record.Verification = 0, ""
	j.progress = newProgress(j.clock, 0)
	return j.saveWith(ctx, data)
}

// continueFrom takes over the counts and the barrier of a previous run.
func (j *journal) continueFrom(ctx context.Context, before contract.Record) error {
	j.record.RetryOf = before.Run
	j.record.Barrier, j.record.BarrierKind, j.record.APIServers = before.Barrier, before.BarrierKind, before.APIServers
	j.record.Counters = before.Counters
	j.record.Failed = 0
	takePreserved(&j.record, &before)
	j.record.Checkpoint = contract.Checkpoint{Counters: j.record.Counters}
	j.progress = newProgress(j.clock, j.record.Done())
	return j.setState(ctx, contract.StateRunning)
}

// repeat starts the run again, because writes at the old version came after its
// barrier.
func (j *journal) repeat(ctx context.Context) error {
	j.record.RetryOf = ""
	j.record.Repeats++
	j.record.State = contract.StateSettling
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

// saveWith writes the record, and other keys with it. Without it a restarted pod
// would repeat or miss work unseen, so an error stops the run.
func (j *journal) saveWith(ctx context.Context, data map[string]string) error {
	j.record.RatePerSecond, j.record.EstimatedCompletion = j.progress.forecast(j.record)
	if j.record.Finished() {
		j.record.Waiting = ""
	}
	text, err := json.Marshal(j.record)
	if err != nil {
		return fmt.Errorf("cannot encode the migration record: %w", err)
	}
	all := map[string]string{contract.RecordKey: string(text)}
	maps.Copy(all, data)
	if err := patiently(ctx, j.clock, func() error { return j.store.Save(ctx, all) }); err != nil {
		return fmt.Errorf("cannot write the checkpoint: %w", err)
	}
	j.saved = j.clock.Now()
	return nil
}

// now is cut to seconds, as the record's text is.
func (j *journal) now() *metav1.Time {
	now := metav1.NewTime(j.clock.Now()).Rfc3339Copy()
	return &now
}

// belongsTo refuses a run that the record is not of. The record of another run
// may be the only proof of what that run did; the record of another state of the
// CustomResourceDefinition proves nothing about this one.
func belongsTo(r contract.Record, spec *contract.Spec) error {
	switch {
	case r.Run != spec.Run:
		return fmt.Errorf("the checkpoint holds the record of run %q, this is run %q: every run needs a ConfigMap of its own", r.Run, spec.Run)
	case r.CRDUID != spec.Pin.UID || r.CRDGeneration != spec.Pin.Generation:
		return fmt.Errorf("the record of run %q is of CustomResourceDefinition uid %s, generation %d, this run is for %s, uid %s, generation %d: start another run",
			r.Run, r.CRDUID, r.CRDGeneration, spec.Pin.Name, spec.Pin.UID, spec.Pin.Generation)
	}
	return nil
}

// count counts one more object.
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
