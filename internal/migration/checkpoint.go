// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// saveInterval spaces the writes that only show progress inside a page.
const saveInterval = time.Second

// journal keeps the run's record. One goroutine uses it.
type journal struct {
	record Record
	store  Checkpoints
	clock  Clock

	// pageFailures are those of the open page. They enter the record with the
	// page, so that a page done again does not list them twice.
	pageFailures []Failure
	saved        time.Time
}

// openJournal reads the record of the run, or starts one.
func openJournal(ctx context.Context, o Options, store Checkpoints, clock Clock) (*journal, error) {
	j := &journal{store: store, clock: clock}
	var data []byte
	err := patiently(ctx, clock, func() (err error) {
		data, err = store.Load(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the checkpoint: %w", err)
	}
	if len(data) == 0 {
		j.record = Record{
			Format: recordFormat, Run: o.Run, CRDUID: o.Pin.UID, CRDGeneration: o.Pin.Generation,
			State: StateSettling, StartTime: j.now(),
		}
		return j, j.save(ctx)
	}
	if j.record, err = ParseRecord(data); err != nil {
		return nil, err
	}
	return j, j.record.belongsTo(o)
}

// passBarrier records the barrier, which a restarted pod keeps.
func (j *journal) passBarrier(ctx context.Context, barrier string) error {
	j.record.Barrier = barrier
	j.record.State = StateRunning
	return j.save(ctx)
}

// openPage starts counting a page, from where the last whole page ended.
func (j *journal) openPage(page *metav1.PartialObjectMetadataList) {
	estimate := j.record.Total
	j.record.Counters = j.record.Checkpoint.Counters

	known := j.record.Done() + int64(len(page.Items))
	switch {
	case page.RemainingItemCount != nil:
		known += *page.RemainingItemCount
	case page.Continue != "":
		known = max(known, estimate)
	}
	j.record.Total = known
}

// note counts one object and shows the progress now and then.
func (j *journal) note(ctx context.Context, r result) error {
	j.record.add(r.outcome)
	if r.outcome == failed {
		j.pageFailures = append(j.pageFailures, Failure{Object: r.object, Message: shorten(r.message)})
	}
	if j.clock.Now().Sub(j.saved) < saveInterval {
		return nil
	}
	return j.save(ctx)
}

// closePage makes a finished page the base that a restarted pod starts from.
func (j *journal) closePage(ctx context.Context, token string) error {
	j.settlePage()
	j.record.Checkpoint = Checkpoint{Pages: j.record.Checkpoint.Pages + 1, Continue: token, Counters: j.record.Counters}
	return j.save(ctx)
}

// restart forgets all pages: the pass starts again and meets every object again.
func (j *journal) restart() {
	j.record.Checkpoint = Checkpoint{}
	j.record.Counters = Counters{}
	j.record.Failures = nil
}

// complete closes the last page and the run in one write, so that no record in
// between looks like the start of a pass.
func (j *journal) complete(ctx context.Context) error {
	j.settlePage()
	j.record.Total = j.record.Done()
	j.record.Checkpoint = Checkpoint{Pages: j.record.Checkpoint.Pages + 1, Counters: j.record.Counters}
	j.record.State = StateCompleted
	j.record.CompletionTime = j.now()
	return j.save(ctx)
}

// abort ends the run for good.
func (j *journal) abort(ctx context.Context, reason string) error {
	j.settlePage()
	j.record.State = StateAborted
	j.record.Message = shorten(reason)
	j.record.CompletionTime = j.now()
	return j.save(ctx)
}

func (j *journal) settlePage() {
	room := maxFailures - len(j.record.Failures)
	j.record.Failures = append(j.record.Failures, j.pageFailures[:min(room, len(j.pageFailures))]...)
	j.pageFailures = nil
}

// save writes the record. Without it a restarted pod would repeat or miss work
// unseen, so an error stops the run.
func (j *journal) save(ctx context.Context) error {
	data, err := json.Marshal(j.record)
	if err != nil {
		return fmt.Errorf("cannot encode the migration record: %w", err)
	}
	if err := patiently(ctx, j.clock, func() error { return j.store.Save(ctx, data) }); err != nil {
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
