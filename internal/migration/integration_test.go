// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package migration

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"
)

func TestIntegration(t *testing.T) {
	c := startCluster(t)
	t.Run("every object is rewritten once", func(t *testing.T) { testRewritten(t, c.newResource(t, "plains", 1200)) })
	t.Run("a refused object is listed", func(t *testing.T) { testRefused(t, c.newResource(t, "guardeds", 60)) })
	t.Run("an interrupted run is resumed", func(t *testing.T) { testResumed(t, c.newResource(t, "resumeds", 600)) })
	t.Run("a version that goes away aborts the run", func(t *testing.T) { testRemoved(t, c.newResource(t, "removeds", 60)) })
}

func testRewritten(t *testing.T, r *resource) {
	r.wantStored(t, map[string]int{"v1beta1": r.objects})
	record := r.mustRun(t, "rewritten", r.engine(t, "first"))
	r.wantCounters(t, record, Counters{Total: 1200, Rewritten: 1200})
	r.wantStored(t, map[string]int{"v1": r.objects})
	if !record.Complete() {
		t.Errorf("record is %+v", record)
	}

	before := r.revision(t)
	record = r.mustRun(t, "found current", r.engine(t, "second"))
	r.wantCounters(t, record, Counters{Total: 1200, Current: 1200})
	if after := r.revision(t); after != before {
		t.Errorf("the second run wrote: the newest object is of revision %d, was %d", after, before)
	}
}

func testRefused(t *testing.T, r *resource) {
	r.refuseUpdates(t, objectName(7))
	record := r.mustRun(t, "rewritten but one", r.engine(t, "guarded"))
	r.wantCounters(t, record, Counters{Total: 60, Rewritten: 59, Failed: 1})
	r.wantStored(t, map[string]int{"v1": 59, "v1beta1": 1})
	if record.State != StateCompleted || record.Complete() {
		t.Errorf("record is %+v", record)
	}
	if len(record.Failures) != 1 || record.Failures[0].Object != "default/"+objectName(7) {
		t.Fatalf("failures are %+v", record.Failures)
	}
	wantError(t, errors.New(record.Failures[0].Message), "is held back")
}

// The pod is killed in the middle of a page, etcd forgets the list's snapshot,
// and another pod takes over.
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
		t.Errorf("%d pages, want 6: whole pages are not done again", record.Checkpoint.Pages)
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
	if record.State != StateAborted || record.Complete() || record.Failed != 0 {
		t.Errorf("record is %+v", record)
	}
	wantError(t, errors.New(record.Message), "cannot patch removeds.migration.example.com")
	// Patches in flight when the run was aborted may have been written, too.
	if stored := r.stored(t); stored["v1beta1"] == 0 || int64(stored["v1"]) < record.Rewritten {
		t.Errorf("%d rewritten, etcd has %v", record.Rewritten, stored)
	}
}

// mustRun runs the engine, and tells how fast it was: a figure to read, on a
// machine that does other things, too.
func (r *resource) mustRun(t *testing.T, what string, engine *Engine) Record {
	t.Helper()
	start := time.Now()
	record, err := engine.Run(logTo(t))
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(start)
	if wait := engine.Settle + discoveryInterval; took > wait {
		t.Logf("%s: %.0f objects/s without the wait for the barrier", what, float64(record.Done())/(took-wait).Seconds())
	}
	return record
}

func (r *resource) wantCounters(t *testing.T, record Record, want Counters) {
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

// atPatch does something before the nth patch, and later ones wait for it.
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
	return patchFunc(func(ctx context.Context, namespace, name string, patch []byte) (*metav1.PartialObjectMetadata, error) {
		once()
		return p.Patch(ctx, namespace, name, patch)
	})
}
