// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

const changedByGeneration = "CustomResourceDefinition crontabs.example.com changed during the run (generation 4, was 3): nothing more was rewritten"

// changes are all ways in which the definition may differ from the pin.
var changes = map[string]struct {
	change func(*fakeAPI)
	want   string
}{
	"generation": {func(f *fakeAPI) { f.definition.Generation = 4 }, changedByGeneration},
	"recreated, same generation": {
		func(f *fakeAPI) { f.definition.UID = "crd-2" },
		"CustomResourceDefinition crontabs.example.com changed during the run (uid crd-2, was crd-1): nothing more was rewritten",
	},
	"being deleted": {
		func(f *fakeAPI) { f.definition.DeletionTimestamp = new(metav1.Now()) },
		"CustomResourceDefinition crontabs.example.com changed during the run (it is being deleted): nothing more was rewritten",
	},
	"deleted": {
		func(f *fakeAPI) { f.onDefinitionRead = noDefinition },
		"CustomResourceDefinition crontabs.example.com does not exist any more: nothing more was rewritten",
	},
	"its endpoint is gone": {
		func(f *fakeAPI) { f.onDefinitionRead = func() error { return generic(http.StatusNotFound, "") } },
		"CustomResourceDefinition crontabs.example.com does not exist any more: nothing more was rewritten",
	},
}

func noDefinition() error {
	return apierrors.NewNotFound(schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}, testPin.Name)
}

// wantAborted expects an aborted run, which another pod does not continue.
func wantAborted(t *testing.T, api *fakeAPI, store *fakeStore, message string) {
	t.Helper()
	records := store.records(t)
	last := records[len(records)-1]
	expect.Equal(t, "message", message, last.Message)
	if last.State != contract.StateAborted || last.Complete() || last.Failed != 0 {
		t.Errorf("record is %+v", last)
	}
	patches := len(api.patched)
	mustRun(t, newTestEngine(api, store))
	expect.Equal(t, "patches after an aborted run", patches, len(api.patched))
}

// The definition changes before the run: nothing is read. It changes with the last patch: the record never said
// Completed.
func TestDefinitionThatChanges(t *testing.T) {
	for name, tt := range changes {
		for _, before := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, before the run: %t", name, before), func(t *testing.T) {
				api, store := newFakeAPI(12), &fakeStore{}
				if before {
					tt.change(api)
				} else {
					api.afterPatch = once(objectKey(11), func() { tt.change(api) })
				}
				mustRun(t, newTestEngine(api, store))
				wantAborted(t, api, store, tt.want)
				if before && len(api.lists)+len(api.patched) != 0 {
					t.Errorf("lists %v, patches %v", api.lists, api.patched)
				}
				if slices.ContainsFunc(store.records(t), func(r contract.Record) bool { return r.State == contract.StateCompleted }) {
					t.Error("the record said Completed")
				}
			})
		}
	}
}

// The definition is restored before the next read, but the run has ended.
func TestLostPinStaysLost(t *testing.T) {
	api := newFakeAPI(1)
	engine := newTestEngine(api, &fakeStore{})
	expect.NoError(t, engine.checkPin(t.Context()))
	api.definition.Generation = 4
	wantError(t, engine.checkPin(t.Context()), changedByGeneration)
	api.definition.Generation = 3
	for name, check := range map[string]func(context.Context) error{"check": engine.checkPin, "await": engine.awaitPin} {
		t.Run(name, func(t *testing.T) { wantError(t, check(t.Context()), changedByGeneration) })
	}
}

// All workers wait for a read that is not answered, and none of them patches after the answer shows
// a change.
func TestNoWorkerPatchesOnAnUnreadPin(t *testing.T) {
	const workers = 4
	api, store, clock := newFakeAPI(40), &fakeStore{}, newFakeClock()
	outage, patches := false, 0
	api.onPatch = func(string) error {
		if patches++; patches == 10 { // of any object
			outage = true
			return clock.Sleep(t.Context(), pinInterval)
		}
		return nil
	}
	patchedAtOutage, tries := 0, 0
	api.onDefinitionRead = func() error {
		if !outage {
			return nil
		}
		if tries++; tries == 1 {
			patchedAtOutage = len(api.patched)
		}
		if tries == maxAttempts {
			api.definition.Generation = 4
			return nil
		}
		return unreachable()
	}
	engine := newTestEngine(api, store)
	engine.Clock, engine.Concurrency, engine.PageSize = clock, workers, 40
	mustRun(t, engine)
	wantAborted(t, api, store, changedByGeneration)
	// Patches that were sent before the outage may still arrive.
	if got := len(api.patched) - patchedAtOutage; got >= workers {
		t.Errorf("%d patches after the outage began, %d workers", got, workers)
	}
	if len(api.oldKeys()) < 20 {
		t.Errorf("%d old objects are left", len(api.oldKeys()))
	}
}
