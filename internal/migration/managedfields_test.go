// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func owner(manager, version string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "example.com/" + version,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:host":{}}}`),
	}
}

// own gives all objects the entries.
func (f *fakeAPI) ownAll(entries ...metav1.ManagedFieldsEntry) {
	for key := range f.objects {
		f.own(key, entries)
	}
}

// newOwned returns an API server with n objects that have fields which a client applied, and an engine that knows
// the version in managedFields.
func newOwned(n int, store *fakeStore) (*fakeAPI, *Engine) {
	api := newFakeAPI(n)
	api.ownAll(owner("argocd", "v1beta1"))
	engine := newTestEngine(api, store)
	engine.OldVersions = []string{"v1beta1"}
	return api, engine
}

// ownersOf returns the field managers of an object.
func (f *fakeAPI) ownersOf(key string) string {
	var names []string
	for _, entry := range f.objects[key].owners {
		names = append(names, entry.Manager+" at "+strings.TrimPrefix(entry.APIVersion, "example.com/"))
	}
	return strings.Join(names, ", ")
}

var managedFieldsStories = map[string]func(*stage){
	// One object cannot be converted to the version in its managedFields: the API server drops them
	// with every write. The run continues without them.
	"managed-fields-cannot-be-restored": func(s *stage) {
		s.api.ownAll(owner("argocd", "v1beta1"))
		s.api.drops = func(key string) bool { return key == objectKey(7) }
		s.pod(tryAndVerifyAll)
	},
	// The definition no longer has a version in the managedFields: the API server drops them with every
	// write, although no converter is unavailable.
	"managed-fields-of-a-removed-version": func(s *stage) {
		s.api.ownAll(owner("controller", "v1"), owner("argocd", "v1alpha1"))
		s.api.drops = func(string) bool { return true }
		s.pod(tryAndVerifyAll)
	},
	// The managedFields of an object that only another version accepts are restored at that version.
	"managed-fields-by-fallback": func(s *stage) {
		s.api.ownAll(owner("argocd", "v1beta1"))
		s.api.onPatch = refusals{objectKey(0): invalid("a000")}.of
		var versions []string
		s.api.onPath = func(patch Patch) error { versions = append(versions, patch.Version); return nil }
		s.api.drops = func(string) bool { return len(versions) == 1 }
		s.pod(func(e *Engine, _ context.CancelFunc) {
			e.Fallback, e.OldVersions = []v1alpha1.MigrationFallback{v1alpha1.MigrationFallbackOldVersion}, []string{"v1beta1"}
		})
	},
}

func tryAndVerifyAll(e *Engine, _ context.CancelFunc) {
	e.OldVersions, e.PageSize, e.Preflight, e.Verify = []string{"v1beta1"}, 12, 12, v1alpha1.MigrationVerifyFull
}

// The converter is unavailable for half an hour, and the API server drops the managedFields of
// patched objects meanwhile: the run waits, and restores them.
func TestDroppedManagedFieldsAreRestored(t *testing.T) {
	for _, concurrency := range []int{1, 4} {
		for _, verify := range []v1alpha1.MigrationVerification{v1alpha1.MigrationVerifyNone, v1alpha1.MigrationVerifyFull} {
			t.Run(fmt.Sprintf("%d in flight, verify %s", concurrency, verify), func(t *testing.T) {
				store, clock := &fakeStore{}, newFakeClock()
				api, engine := newOwned(12, store)
				from, over := 4, clock.Now().Add(30*time.Minute)
				api.drops = func(string) bool { return len(api.patched) > from && clock.Now().Before(over) }
				shown := make(chan struct{})
				store.whenSaved("patches wait: the API server stores objects without metadata.managedFields", func() { close(shown) })
				api.onDryRun = func(string) error { <-shown; return nil }
				engine.Clock, engine.Concurrency, engine.PageSize, engine.Verify = clock, concurrency, 12, verify
				if record := mustRun(t, engine); !record.Complete() || record.Rewritten != 12 || record.Repeats != 0 {
					t.Errorf("record is %+v", record)
				}
				expect.Equal(t, "the run ended before the converter answered", false, clock.Now().Before(over))
				for i := range 12 {
					expect.Equal(t, "owner of "+objectKey(i), "argocd at v1beta1", api.ownersOf(objectKey(i)))
				}
				if old := api.oldKeys(); len(old) > 0 {
					t.Errorf("stored at the old version: %s", old)
				}
			})
		}
	}
}

// A client writes or deletes an object before its managedFields are restored.
func TestManagedFieldsWithConcurrentWrites(t *testing.T) {
	tests := map[string]struct {
		meanwhile func(api *fakeAPI)
		want      string
	}{
		"no write":            {func(*fakeAPI) {}, "argocd at v1beta1"},
		"another manager":     {func(api *fakeAPI) { api.takeOver(owner("controller", "v1")) }, "controller at v1, argocd at v1beta1"},
		"the same manager":    {func(api *fakeAPI) { api.takeOver(owner("argocd", "v1beta1")) }, "argocd at v1beta1"},
		"managedFields reset": {func(api *fakeAPI) { api.takeOver() }, "argocd at v1beta1"},
		"deleted":             {func(api *fakeAPI) { api.remove(objectKey(0)) }, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			api, engine := newOwned(1, &fakeStore{})
			written := false
			api.drops = func(string) bool { return len(api.patched) == 1 }
			api.onPatch = func(string) error {
				if len(api.patched) == 2 && !written {
					written = true
					test.meanwhile(api)
				}
				return nil
			}
			record := mustRun(t, engine)
			if !record.Complete() || !written {
				t.Errorf("record is %+v", record)
			}
			expect.Equal(t, "owners", test.want, api.ownersOf(objectKey(0)))
		})
	}
}

// takeOver writes the first object and replaces its managedFields.
func (f *fakeAPI) takeOver(owners ...metav1.ManagedFieldsEntry) {
	f.own(objectKey(0), owners)
	f.write(objectKey(0), "v1")
}
