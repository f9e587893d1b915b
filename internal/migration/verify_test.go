// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// lagging makes the API server encode at the old version for some time: patches then change
// nothing.
func lagging(api *fakeAPI, clock *fakeClock, behind time.Duration) {
	until := clock.Now().Add(behind)
	api.lags = func() bool { return clock.Now().Before(until) }
}

func TestAuditDetectsALaggingServer(t *testing.T) {
	tests := map[string]struct {
		verify  v1alpha1.MigrationVerification
		behind  time.Duration
		repeats int
		state   contract.State
	}{
		"within the propagation delay":         {v1alpha1.MigrationVerifyNone, 30 * time.Second, 0, contract.StateCompleted},
		"a moment longer, nothing verified":    {v1alpha1.MigrationVerifyNone, 90 * time.Second, 1, contract.StateCompleted},
		"a moment longer, a sample verified":   {v1alpha1.MigrationVerifySample, 90 * time.Second, 1, contract.StateCompleted},
		"a moment longer, everything verified": {v1alpha1.MigrationVerifyFull, 90 * time.Second, 1, contract.StateCompleted},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			api, store, clock := newFakeAPI(12), &fakeStore{}, newFakeClock()
			lagging(api, clock, tt.behind)
			engine := newTestEngine(api, store)
			engine.Clock, engine.Verify = clock, tt.verify
			record := mustRun(t, engine)
			expect.Equal(t, "state and repeats", []any{tt.state, tt.repeats}, []any{record.State, record.Repeats})
			if record.Complete() && len(api.oldKeys()) != 0 {
				t.Errorf("complete, and these are old: %v", api.oldKeys())
			}
		})
	}
}

// TestAuditOnAnotherNode: the pod that continues a run has the time of its own node, which may be ahead. It
// waits for the propagation delay all the same.
func TestAuditOnAnotherNode(t *testing.T) {
	api, store := newFakeAPI(12), &fakeStore{}
	lags := true
	api.lags = func() bool { return lags }
	ctx, cancel := context.WithCancel(t.Context())
	store.whenSaved(string(contract.StateAuditing), cancel)
	first := newTestEngine(api, store)
	first.Clock, first.Verify = newFakeClock(), v1alpha1.MigrationVerifyNone
	if _, err := first.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("the first pod ended with %v", err)
	}
	store.afterSave = nil
	ahead := newFakeClock()
	ahead.now = ahead.now.Add(time.Hour)
	ready := ahead.now.Add(30 * time.Second)
	api.lags = func() bool { return ahead.Now().Before(ready) }
	second := newTestEngine(api, store)
	second.Clock, second.Verify = ahead, v1alpha1.MigrationVerifyNone
	if record := mustRun(t, second); record.Repeats != 1 || len(api.oldKeys()) != 0 {
		t.Errorf("%d repeats, and these are old: %v", record.Repeats, api.oldKeys())
	}
}

// TestResumedRunListsAllObjects: a record says that all objects were rewritten. What the list shows decides.
func TestResumedRunListsAllObjects(t *testing.T) {
	for name, tt := range map[string]struct {
		missed  bool
		verify  v1alpha1.MigrationVerification
		repeats int
	}{
		"it is right":                         {false, "", 0},
		"an object was missed":                {true, "", 1},
		"an object was missed, none verified": {true, v1alpha1.MigrationVerifyNone, 1},
	} {
		t.Run(name, func(t *testing.T) {
			api, store := newFakeAPI(4), &fakeStore{}
			record := completedRecord()
			record.State, record.CompletionTime = contract.StateVerifying, nil
			record.Counters, record.Barrier, record.BarrierKind = contract.Counters{Total: 4, Rewritten: 4}, "104", contract.BarrierAllServers
			for i := range 4 {
				if i != 2 || !tt.missed {
					api.write(objectKey(i), "v1")
				}
			}
			text, err := json.Marshal(record)
			expect.NoError(t, err)
			store.saved = [][]byte{text}
			engine := newTestEngine(api, store)
			engine.Verify = tt.verify
			record = mustRun(t, engine)
			expect.Equal(t, "objects at the old version", nil, api.oldKeys())
			expect.Equal(t, "repeats, complete", []any{tt.repeats, true}, []any{record.Repeats, record.Complete()})
			if !tt.missed {
				expect.Equal(t, "verified, patches", []int{4, 0}, []int{int(record.Verified), len(api.patched)})
			}
		})
	}
}

func TestSampleIsBoundedAndSpread(t *testing.T) {
	var s reverifyList
	const objects = 100_000
	now := newFakeClock().Now()
	for i := range int64(objects) {
		s.add("run-1", result{object: fmt.Sprintf("ns/%06d", i), outcome: current}, i, now)
	}
	expect.Equal(t, "early, and in the sample", [2]int{maxEarly, maxSample}, [2]int{len(s.Early), len(s.Sample)})
	// A tenth of the objects should have 30 of 300 in the sample, plus or minus six standard
	// deviations.
	tenths := make([]int, 10)
	for _, object := range s.Sample {
		tenths[object[4]-'0']++
	}
	for tenth, n := range tenths {
		if n < 1 || n > 62 {
			t.Errorf("tenth %d has %d of the sample", tenth, n)
		}
	}
	data := map[string]string{}
	expect.NoError(t, s.write(data))
	again, err := openReverifyList(data, now)
	expect.NoError(t, err)
	expect.Equal(t, "sample", s.Sample, again.Sample)
}

// TestDefaultVerification has more objects than a sample.
func TestDefaultVerification(t *testing.T) {
	const objects = maxSample + 100
	one, two := &fakeServers{since: map[string]int{"a": 0}, leases: 1}, &fakeServers{since: map[string]int{"a": 0}, leases: 2}
	tests := map[string]struct {
		servers *fakeServers
		verify  v1alpha1.MigrationVerification
		want    int64
	}{
		"every API server was asked":         {one, "", maxSample},
		"one was not asked":                  {two, "", objects},
		"one was not asked, refused by user": {two, v1alpha1.MigrationVerifySample, maxSample},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			engine := newTestEngine(newFakeAPI(objects), &fakeStore{})
			engine.Servers, engine.Verify = tt.servers, tt.verify
			if record := mustRun(t, engine); !record.Complete() || record.Verified != tt.want {
				t.Errorf("%d verified, want %d: %+v", record.Verified, tt.want, record)
			}
		})
	}
}
