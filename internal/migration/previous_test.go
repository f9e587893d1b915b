// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"errors"
	"testing"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// failedRun does a run of 40 objects of which every third fails.
func failedRun(t *testing.T) (*fakeAPI, *fakeStore) {
	t.Helper()
	api, store := newFakeAPI(40), &fakeStore{}
	api.onPatch = func(key string) error {
		for i := 0; i < 40; i += 3 {
			if key == objectKey(i) {
				return invalid(key)
			}
		}
		return nil
	}
	expect.Equal(t, "failed", 14, mustRun(t, newTestEngine(api, store)).Failed)
	api.patched, api.lists = nil, nil
	return api, store
}

func retryOf(api *fakeAPI, before, store *fakeStore) *Engine {
	engine := newTestEngine(api, store)
	engine.Spec.Run, engine.PreviousRun, engine.Verify = "run-2", before, v1alpha1.MigrationVerifySample
	return engine
}

func TestRetryPatchesOnlyFailedObjects(t *testing.T) {
	api, before := failedRun(t)
	api.remove(objectKey(3))
	api.onPatch = refusals{objectKey(6): invalid("a006")}.of
	record := mustRun(t, retryOf(api, before, &fakeStore{}))
	expect.Equal(t, "counters", contract.Counters{Total: 40, Rewritten: 38, Gone: 1, Failed: 1}, record.Counters)
	if record.RetryOf != "run-1" || record.Barrier != "140" || record.BarrierKind != contract.BarrierAllServers || record.Verified != 12 {
		t.Errorf("record is %+v", record)
	}
	// Thirteen objects still exist, and twelve of them are verified.
	if len(api.patched) != 25 || len(record.Failures) != 1 || record.Failures[0].Object != objectKey(6) {
		t.Errorf("patched %v, failures %+v", api.patched, record.Failures)
	}
	expect.Equal(t, "old objects", []string{objectKey(6)}, api.oldKeys())
}

func TestUnusablePreviousRunIsNotContinued(t *testing.T) {
	tests := map[string]func(*testing.T, *fakeStore){
		"gone":               func(_ *testing.T, s *fakeStore) { s.onLoad = func() error { return forbidden("run-1") } },
		"without a record":   func(_ *testing.T, s *fakeStore) { s.saved = nil; delete(s.data, contract.RecordKey) },
		"another definition": func(t *testing.T, s *fakeStore) { s.edit(t, func(r *contract.Record) { r.CRDUID = "crd-0" }) },
		"another generation": func(t *testing.T, s *fakeStore) { s.edit(t, func(r *contract.Record) { r.CRDGeneration++ }) },
		"aborted": func(t *testing.T, s *fakeStore) {
			s.edit(t, func(r *contract.Record) { r.State, r.Message = contract.StateAborted, "no" })
		},
		"not all listed":    func(_ *testing.T, s *fakeStore) { s.data[chunkKey(0)] = "" },
		"list not readable": func(_ *testing.T, s *fakeStore) { s.data[chunkKey(0)] = "{" },
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			api, before := failedRun(t)
			api.onPatch = nil
			spoil(t, before)
			record := mustRun(t, retryOf(api, before, &fakeStore{}))
			if !record.Complete() || record.RetryOf != "" || record.Rewritten != 14 || record.Current != 26 {
				t.Errorf("record is %+v", record)
			}
		})
	}
}

func TestPreviousRunIsDeletedBeforeARestart(t *testing.T) {
	api, before := failedRun(t)
	api.onPatch = func(string) error { return unauthorized() }
	store := &fakeStore{}
	if _, err := retryOf(api, before, store).Run(t.Context()); err == nil {
		t.Fatal("the run did not stop")
	}
	before.onLoad = func() error { return errors.New("no such ConfigMap") }
	_, err := retryOf(api, before, store).Run(t.Context())
	wantError(t, err, "cannot read what run run-1 has left to do: no such ConfigMap")
}

// edit saves a changed copy of the last record.
func (s *fakeStore) edit(t *testing.T, change func(*contract.Record)) {
	t.Helper()
	records := s.records(t)
	last := records[len(records)-1]
	change(&last)
	s.saved = append(s.saved, mustMarshal(t, last))
}
