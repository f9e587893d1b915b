// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package migration

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"

	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestIntegration(t *testing.T) {
	c := startCluster(t)
	t.Run("a lagging API server", func(t *testing.T) { testLag(t, c) })
	t.Run("objects that cannot be converted or stored are named", func(t *testing.T) { testFaulty(t, c.newResource(t, "faulties", 60)) })
	t.Run("the run waits for an unavailable converter", func(t *testing.T) { testUnavailable(t, c.newResource(t, "unavailables", 60)) })
	t.Run("a refused object is accepted through its status", func(t *testing.T) { testStatus(t, c.newResource(t, "statuses", 30)) })
	t.Run("a refused object is accepted at its old version", func(t *testing.T) { testOldVersion(t, c.newResource(t, "oldies", 30)) })
	t.Run("other clients write, delete and create concurrently", func(t *testing.T) { testWriters(t, c.newResource(t, "busies", 400)) })
	t.Run("a pod killed in every page, and etcd compacted", func(t *testing.T) { testChaos(t, c.newResource(t, "chaoses", 600)) })
	t.Run("etcd is restored beside a pod", func(t *testing.T) { testRestoredEtcd(t, c.newResource(t, "rewounds", 600)) })
	t.Run("another client labels the checkpoint", func(t *testing.T) { testLabelledCheckpoint(t, c.newResource(t, "labelleds", 60)) })
	t.Run("preserved data is restored", func(t *testing.T) { testRestore(t, c.newResource(t, "holders", 20)) })
	t.Run("every object is rewritten once", func(t *testing.T) { testRewritten(t, c.newResource(t, "plains", 1200)) })
	t.Run("objects that the watch cache lacks", func(t *testing.T) { testWatchCache(t, c.newResource(t, "uncacheds", 1)) })
	t.Run("a refused object is listed", func(t *testing.T) { testRefused(t, c.newResource(t, "guardeds", 60)) })
	t.Run("an interrupted run is resumed", func(t *testing.T) { testResumed(t, c.newResource(t, "resumeds", 600)) })
	t.Run("a removed conversion aborts the run", func(t *testing.T) { testConversionDropped(t, c.newResource(t, "droppeds", 600)) })
	t.Run("a changed storage version aborts the run", func(t *testing.T) { testStorageMoved(t, c.newResource(t, "moveds", 600)) })
	t.Run("a recreated definition aborts the run", func(t *testing.T) { testRecreated(t, c.newResource(t, "recreateds", 60)) })
	t.Run("another storage version aborts the run", func(t *testing.T) { testOtherStorage(t, c.newResource(t, "others", 10)) })
	t.Run("lost rights end the pod and not the run", func(t *testing.T) { testRightsLost(t, c.newResource(t, "revokeds", 60)) })
	t.Run("a version that is no longer served aborts the run", func(t *testing.T) { testRemoved(t, c.newResource(t, "removeds", 60)) })
	t.Run("logs and records contain no object data", func(t *testing.T) { testNothingLeaks(t, c) })
}

func testRewritten(t *testing.T, r *resource) {
	r.wantStored(t, map[string]int{"v1beta1": r.objects})
	record := r.mustRun(t, "rewritten", r.engine(t, "first"))
	r.wantCounters(t, record, contract.Counters{Total: 1200, Rewritten: 1200})
	r.wantStored(t, map[string]int{"v1": r.objects})
	if !record.Complete() {
		t.Errorf("record is %+v", record)
	}

	before := r.revision(t)
	record = r.mustRun(t, "found current", r.engine(t, "second"))
	r.wantCounters(t, record, contract.Counters{Total: 1200, Current: 1200})
	if after := r.revision(t); after != before {
		t.Errorf("the second run wrote: the newest object is of revision %d, was %d", after, before)
	}
}

func testRefused(t *testing.T, r *resource) {
	r.refuseUpdates(t, objectName(7), "*")
	record := r.mustRun(t, "rewritten but one", r.engine(t, "guarded"))
	r.wantCounters(t, record, contract.Counters{Total: 60, Rewritten: 59, Failed: 1})
	r.wantStored(t, map[string]int{"v1": 59, "v1beta1": 1})
	if record.State != contract.StateCompleted || record.Complete() {
		t.Errorf("record is %+v", record)
	}
	if len(record.Failures) != 1 || record.Failures[0].Object != "default/"+objectName(7) {
		t.Fatalf("failures are %+v", record.Failures)
	}
	wantError(t, errors.New(record.Failures[0].Message), "is held back")
}

// The pod is killed in the middle of a page, etcd compacts the snapshot of the list, and another
// pod continues.
func testResumed(t *testing.T, r *resource) {
	ctx, kill := context.WithCancel(logTo(t))
	defer kill()
	engine := r.engine(t, "resumed")
	engine.PageSize = 100
	engine.Patcher = atPatch(engine.Patcher, 250, kill)
	if _, err := engine.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("error is %v", err)
	}
	stored := r.stored(t)
	if stored["v1"] < 240 || stored["v1beta1"] == 0 {
		t.Fatalf("the first pod left %v", stored)
	}
	r.compact(t)

	engine = r.engine(t, "resumed")
	engine.PageSize = 100
	record := r.mustRun(t, "resumed", engine)
	r.wantStored(t, map[string]int{"v1": r.objects})
	if !record.Complete() || record.Total != 600 || record.Current > 100 {
		t.Errorf("record is %+v", record)
	}
	if record.Checkpoint.Pages != 6 {
		t.Errorf("%d pages, want 6: finished pages are not repeated", record.Checkpoint.Pages)
	}
}

func testRemoved(t *testing.T, r *resource) {
	engine := r.engine(t, "removed")
	engine.Patcher = atPatch(engine.Patcher, 20, func() {
		if err := r.unserve(t.Context()); err != nil {
			t.Error(err)
		}
	})
	record := r.mustRun(t, "rewritten before the end", engine)
	if record.State != contract.StateAborted || record.Complete() || record.Failed != 0 {
		t.Errorf("record is %+v", record)
	}
	wantError(t, errors.New(record.Message), "removeds.migration.example.com")
	// Patches in flight when the run was aborted may have been written, too.
	if stored := r.stored(t); stored["v1beta1"] == 0 || int64(stored["v1"]) < record.Rewritten {
		t.Errorf("%d rewritten, etcd has %v", record.Rewritten, stored)
	}
}

// The conversion is removed, for example because the definition is replaced by one without it:
// objects that are rewritten afterwards would not be converted.
func testConversionDropped(t *testing.T, r *resource) {
	r.convertBy(t, mark)
	r.abortsUnder(t, `[{"op": "replace", "path": "/spec/conversion", "value": {"strategy": "None"}}]`)
	for _, object := range r.raw(t) {
		if index := path.Base(string(object.Key)); index >= objectName(200) && !strings.Contains(string(object.Value), `"`+host+`"`) {
			t.Errorf("%s is %s", index, object.Value)
		}
	}
}

func testStorageMoved(t *testing.T, r *resource) {
	r.abortsUnder(t, `[{"op": "replace", "path": "/spec/versions/0/storage", "value": true},
		{"op": "replace", "path": "/spec/versions/1/storage", "value": false}]`)
}

// abortsUnder changes the definition during the second page of 100 objects, and expects all later
// pages to be unchanged in etcd.
func (r *resource) abortsUnder(t *testing.T, change string) {
	t.Helper()
	engine := r.engine(t, "pinned")
	engine.PageSize = 100
	engine.Patcher = atPatch(engine.Patcher, 150, func() {
		if err := r.change(t.Context(), change); err != nil {
			t.Error(err)
		}
	})
	before := r.revisions(t)
	record := r.mustRun(t, "rewritten before the change", engine)
	if record.State != contract.StateAborted || record.Complete() || record.Failed != 0 || record.Checkpoint.Pages > 2 {
		t.Errorf("record is %+v", record)
	}
	wantError(t, errors.New(record.Message), fmt.Sprintf(
		"CustomResourceDefinition %s changed during the run (generation %d, was %d): nothing more was rewritten", r.pin.Name, r.pin.Generation+1, r.pin.Generation))
	after := r.revisions(t)
	for i := 200; i < r.objects; i++ {
		if name := objectName(i); after[name] != before[name] {
			t.Errorf("%s was written at revision %d", name, after[name])
		}
	}
}

func testRecreated(t *testing.T, r *resource) {
	engine := r.engine(t, "recreated")
	engine.Patcher = atPatch(engine.Patcher, 20, func() {
		if err := r.recreate(t.Context()); err != nil {
			t.Error(err)
		}
	})
	record := r.mustRun(t, "rewritten before the end", engine)
	if record.State != contract.StateAborted || record.Complete() || record.Failed != 0 {
		t.Errorf("record is %+v", record)
	}
	// A patch may meet the missing endpoint before the pin is read.
	wantError(t, errors.New(record.Message), r.pin.Name)
}

// The clock of this run does not really wait for two minutes.
func testOtherStorage(t *testing.T, r *resource) {
	engine := r.engine(t, "other")
	engine.Resource.Version = "v1beta1"
	engine.Clock = newFakeClock()
	record := r.mustRun(t, "rewritten", engine)
	if record.State != contract.StateAborted || record.Done() != 0 {
		t.Errorf("record is %+v", record)
	}
	wantError(t, errors.New(record.Message), "does not steadily show v1beta1 as the storage version of others.migration.example.com")
}

func testRightsLost(t *testing.T, r *resource) {
	engine := r.engine(t, "revoked")
	patcher := engine.Patcher
	engine.Patcher = atPatch(patcher, 20, func() {
		if err := r.setVerbs(t.Context(), "revoked", patcher, "list"); err != nil {
			t.Error(err)
		}
	})
	record, err := engine.Run(logTo(t))
	wantError(t, err, "not allowed to patch revokeds.migration.example.com")
	if record.Finished() || record.Failed != 0 {
		t.Errorf("record is %+v", record)
	}
	expect.NoError(t, r.setVerbs(t.Context(), "revoked", patcher, "list", "patch"))
	record = r.mustRun(t, "resumed", r.engine(t, "revoked"))
	if !record.Complete() || record.Total != 60 {
		t.Errorf("record is %+v", record)
	}
	r.wantStored(t, map[string]int{"v1": r.objects})
}

// mustRun runs the engine and logs its rate, which depends on the machine.
func (r *resource) mustRun(t *testing.T, what string, engine *Engine) contract.Record {
	t.Helper()
	start := time.Now()
	record, err := engine.Run(logTo(t))
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(start)
	if wait := engine.PropagationDelay.Duration + discoveryInterval; took > wait {
		t.Logf("%s: %.0f objects/s without the wait for the barrier", what, float64(record.Done())/(took-wait).Seconds())
	}
	return record
}

func (r *resource) wantCounters(t *testing.T, record contract.Record, want contract.Counters) {
	t.Helper()
	if diff := cmp.Diff(want, record.Counters); diff != "" {
		t.Errorf("counters (-want +got):\n%s", diff)
	}
}

func (r *resource) wantStored(t *testing.T, want map[string]int) {
	t.Helper()
	if diff := cmp.Diff(want, r.stored(t)); diff != "" {
		t.Errorf("versions in etcd (-want +got):\n%s", diff)
	}
}

// atPatch calls do before the nth patch. Later patches wait for it.
func atPatch(p Patcher, n int, do func()) Patcher {
	var mu sync.Mutex
	count := 0
	once := func() {
		mu.Lock()
		defer mu.Unlock()
		if count++; count == n {
			do()
		}
	}
	return patchFunc(func(ctx context.Context, patch Patch) (*metav1.PartialObjectMetadata, error) {
		if !patch.DryRun {
			once()
		}
		return p.Patch(ctx, patch)
	})
}
