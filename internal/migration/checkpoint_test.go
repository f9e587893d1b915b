// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
)

// TestRecordOfEveryPage compares all records of a run in which one object is deleted, and another one refused.
func TestRecordOfEveryPage(t *testing.T) {
	api, store := newFakeAPI(12), &fakeStore{}
	api.onPatch = func(key string) error {
		if key == objectKey(3) {
			api.remove(key)
		}
		return refusals{objectKey(6): invalid("a006")}.of(key)
	}
	mustRun(t, newTestEngine(api, store))
	store.records(t)
	golden.Check(t, string(bytes.Join(store.saved, []byte("\n")))+"\n", "records.txt")
}

func TestProgressWithinAPage(t *testing.T) {
	tests := map[string]struct {
		step time.Duration
		want int
	}{
		"no time passes":          {0, 0},
		"0.2 seconds per reading": {200 * time.Millisecond, 1},
		"1 second per reading":    {time.Second, 5},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			store := &fakeStore{}
			engine := newTestEngine(newFakeAPI(5), store)
			engine.Clock = steppingClock(tt.step)
			j, err := engine.openJournal(t.Context())
			expect.NoError(t, err)
			expect.NoError(t, j.passBarrier(t.Context(), "105"))
			j.openPage(&metav1.PartialObjectMetadataList{Items: make([]metav1.PartialObjectMetadata, 5)})
			for range 5 {
				expect.NoError(t, j.add(t.Context(), result{outcome: rewritten}))
			}
			shown := 0
			for _, r := range store.records(t) {
				if r.State == contract.StateRunning && r.Done() > 0 {
					shown++
					expect.Equal(t, "done and total in the record inside the page", [2]int64{0, 5}, [2]int64{r.Checkpoint.Done(), r.Total})
				}
			}
			expect.Equal(t, "records inside the page", tt.want, shown)
		})
	}
}

// A save that fails permanently stops the run. TestCrashAtEverySave shows what the next pod does.
func TestCheckpointWriteThatKeepsFailingStopsTheRun(t *testing.T) {
	for name, tt := range map[string]struct {
		err   error
		tries int
	}{
		"unreachable":    {unreachable(), maxAttempts},
		"ConfigMap gone": {apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "run-1"), 1},
		"forbidden":      {forbidden("run-1"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			store, saves := &fakeStore{}, 0
			store.onSave = func() error { saves++; return tt.err }
			_, err := newTestEngine(newFakeAPI(12), store).Run(t.Context())
			wantError(t, err, "cannot write the checkpoint")
			expect.Equal(t, "saves", tt.tries, saves)
		})
	}
}

// The pod crashes at every save, also of runs with more to save than a record, and the next pod continues with what is saved.
func TestCrashAtEverySave(t *testing.T) {
	type run func(*testing.T, *fakeStore) (*fakeAPI, func() *Engine)
	lags := func(verify v1alpha1.MigrationVerification) run {
		return func(_ *testing.T, store *fakeStore) (*fakeAPI, func() *Engine) {
			api, clock := newFakeAPI(12), newFakeClock()
			lagging(api, clock, 90*time.Second)
			return api, func() *Engine {
				engine := newTestEngine(api, store)
				engine.Clock, engine.Verify = clock, verify
				return engine
			}
		}
	}
	counted := func(verified int64) func(contract.Record) bool {
		return func(r contract.Record) bool { return r.Total == 12 && r.Verified == verified }
	}
	for name, tt := range map[string]struct {
		saves int
		start run
		check func(contract.Record) bool
	}{
		"saves within pages": {10, func(_ *testing.T, store *fakeStore) (*fakeAPI, func() *Engine) {
			api := newFakeAPI(12)
			return api, func() *Engine {
				engine := newTestEngine(api, store)
				engine.Clock = steppingClock(400 * time.Millisecond)
				return engine
			}
		}, func(r contract.Record) bool { return r.Total == 12 }},
		"a server that lags": {16, lags(v1alpha1.MigrationVerifyNone), func(r contract.Record) bool {
			return r.Total == 12 && r.Verified%12 == 0 // all if the next pod is after the barrier
		}},
		"and a sample":   {16, lags(v1alpha1.MigrationVerifySample), counted(12)},
		"and everything": {16, lags(v1alpha1.MigrationVerifyFull), counted(12)},
		"a retry": {9, func(t *testing.T, store *fakeStore) (*fakeAPI, func() *Engine) {
			api, before := failedRun(t)
			api.onPatch = nil
			return api, func() *Engine { return retryOf(api, before, store) }
		}, func(r contract.Record) bool { return r.Total == 40 && r.RetryOf == "run-1" }},
		"preserved values": {12, func(t *testing.T, store *fakeStore) (*fakeAPI, func() *Engine) {
			api := holders()
			return api, func() *Engine { return holdersEngine(t, api, store) }
		}, func(r contract.Record) bool {
			return r.Preserved != nil && r.Preserved.Seen == 4 && r.Preserved.Objects == 1
		}},
	} {
		for save := range tt.saves {
			t.Run(fmt.Sprintf("%s, save %d", name, save), func(t *testing.T) {
				store := &fakeStore{}
				api, pod := tt.start(t, store)
				store.failAfter(save, forbidden("run"))
				if record, err := pod().Run(t.Context()); err == nil && !record.Complete() {
					t.Fatalf("record is %+v", record)
				}
				store.onSave = nil
				if record := mustRun(t, pod()); !record.Complete() || !tt.check(record) || len(api.oldKeys()) != 0 {
					t.Errorf("record is %+v, old objects %v", record, api.oldKeys())
				}
			})
		}
	}
}

// The second patch is never answered: it ends because the run cancels it.
func TestCheckpointWriteThatFailsStopsThePatchesInFlight(t *testing.T) {
	api, store := newFakeAPI(2), &fakeStore{}
	store.failAfter(2, forbidden("run-1"))
	engine := newTestEngine(api, store)
	engine.Clock = steppingClock(time.Second)
	engine.Patcher = patchFunc(func(ctx context.Context, patch Patch) (*metav1.PartialObjectMetadata, error) {
		if patch.Name == "a001" {
			<-ctx.Done()
		}
		return api.Patch(ctx, patch)
	})
	_, err := engine.Run(t.Context())
	wantError(t, err, "cannot write the checkpoint")
}

func TestCheckpointThatCannotBeRead(t *testing.T) {
	tests := map[string]struct {
		failures int
		err      error
		want     string
	}{
		"recovers":    {failures: 3, err: unavailable()},
		"unavailable": {failures: 100, err: unreachable(), want: "cannot read the checkpoint"},
		"gone":        {failures: 100, err: apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "run-1"), want: `configmaps "run-1" not found`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			store, loads := &fakeStore{}, 0
			store.onLoad = func() error {
				if loads++; loads <= tt.failures {
					return tt.err
				}
				return nil
			}
			_, err := newTestEngine(newFakeAPI(3), store).Run(t.Context())
			if tt.want != "" {
				wantError(t, err, tt.want)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestForeignRecordIsNotOverwritten(t *testing.T) {
	another, recreated, changed := completedRecord(), completedRecord(), completedRecord()
	another.Run = "run-0"
	recreated.CRDUID = "crd-0"
	changed.CRDGeneration = 2
	tests := map[string]struct {
		data []byte
		want string
	}{
		"another run":        {mustMarshal(t, another), `the record of run "run-0", this is run "run-1"`},
		"another definition": {mustMarshal(t, recreated), "uid crd-0, generation 3, this run is for crontabs.example.com, uid crd-1, generation 3"},
		"another generation": {mustMarshal(t, changed), "uid crd-1, generation 2, this run is for crontabs.example.com, uid crd-1, generation 3"},
		"not JSON":           {[]byte("{"), "not readable"},
		"newer":              {[]byte(`{"format":9,"run":"run-1","state":"Running","barrier":"1"}`), "format is 9"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			api, store := newFakeAPI(3), &fakeStore{saved: [][]byte{tt.data}}
			_, err := newTestEngine(api, store).Run(t.Context())
			wantError(t, err, tt.want)
			expect.Equal(t, "records saved, objects patched", [2]int{1, 0}, [2]int{len(store.saved), len(api.patched)})
		})
	}
}

func TestFinishedRunIsNotRepeated(t *testing.T) {
	withFailed, aborted := completedRecord(), completedRecord()
	withFailed.Failed, withFailed.Total = 1, 7
	aborted.State, aborted.Message = contract.StateAborted, "the endpoint is gone"
	for name, r := range map[string]contract.Record{"completed": completedRecord(), "completed with failed": withFailed, "aborted": aborted} {
		t.Run(name, func(t *testing.T) {
			api, store := newFakeAPI(3), &fakeStore{saved: [][]byte{mustMarshal(t, r)}}
			got := mustRun(t, newTestEngine(api, store))
			expect.Equal(t, "record", r, got)
			expect.Equal(t, "records saved, and requests", [2]int{1, 0}, [2]int{len(store.saved), len(api.lists) + len(api.patched)})
		})
	}
}

func mustMarshal(t *testing.T, r contract.Record) []byte {
	t.Helper()
	data, err := json.Marshal(r)
	expect.NoError(t, err)
	return data
}

// A run that is aborted before it repeats the current page counts nothing of that page: it lists as
// many failures as it counts.
func TestAbortedRunListsTheFailuresThatItCounts(t *testing.T) {
	api, store := newFakeAPI(12), &fakeStore{}
	ctx, kill := context.WithCancel(t.Context())
	api.onPatch = refusals{objectKey(1): invalid("a001"), objectKey(6): invalid("a006")}.of
	store.whenSaved(`"failed":2`, kill)
	engine := newTestEngine(api, store)
	engine.Clock = steppingClock(time.Second)
	if _, err := engine.Run(ctx); err == nil {
		t.Fatal("the pod was not killed")
	}
	shown := store.records(t)
	expect.Equal(t, "failed in the last record", 2, shown[len(shown)-1].Failed)
	api.definition.Generation++
	record := mustRun(t, newTestEngine(api, store))
	failures, err := FailuresOf(store.data)
	expect.NoError(t, err)
	if record.State != contract.StateAborted || record.Failed != 1 || len(failures) != 1 || record.Total != 12 {
		t.Errorf("%d failures are listed, and the record is %+v", len(failures), record)
	}
}
