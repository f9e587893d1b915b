// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// look is one answer of discovery.
type look struct {
	hash   string
	served bool
	err    error
}

type lookFunc func() look

func (f lookFunc) StorageVersionHash(context.Context) (string, bool, error) {
	l := f()
	return l.hash, l.served, l.err
}

func TestAwaitStorageVersion(t *testing.T) {
	missing, before, after := look{}, look{hash: "old", served: true}, look{hash: "new", served: true}
	tests := map[string]struct {
		looks []look
		// times that discovery was read; the last look repeats.
		want int
		stop string
	}{
		"steady":              {looks: []look{after}, want: 2},
		"not served yet":      {looks: []look{missing, missing, after}, want: 4},
		"changes":             {looks: []look{before, after}, want: 3},
		"servers differ":      {looks: []look{before, after, before, after}, want: 5},
		"served, then not":    {looks: []look{after, missing, after}, want: 4},
		"hashes not shown":    {looks: []look{{served: true}}, want: 2},
		"recovers":            {looks: []look{{err: unreachable()}, after, {err: unavailable()}, after}, want: 4},
		"never served":        {looks: []look{missing}, want: discoveryReads, stop: "does not show crontabs.example.com at version v1"},
		"discovery forbidden": {looks: []look{{err: forbidden("")}}, want: 1, stop: "denied by policy"},
		"server stays away":   {looks: []look{{err: unreachable()}}, want: patience, stop: "connection refused"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			reads := 0
			engine := newTestEngine(newFakeAPI(0), &fakeStore{})
			engine.Discovery = lookFunc(func() look {
				reads++
				return tt.looks[min(reads, len(tt.looks))-1]
			})
			err := engine.awaitStorageVersion(t.Context())
			if reads != tt.want {
				t.Errorf("%d reads, want %d", reads, tt.want)
			}
			if tt.stop != "" {
				wantError(t, err, tt.stop)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestBarrierIsReadAfterSettling(t *testing.T) {
	api, store, clock := newFakeAPI(3), &fakeStore{}, newFakeClock()
	engine := newTestEngine(api, store)
	engine.Clock = clock
	api.onList = func(options metav1.ListOptions) error {
		if len(api.lists) == 1 {
			if diff := cmp.Diff(metav1.ListOptions{Limit: 1}, options); diff != "" {
				t.Errorf("list for the barrier (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]time.Duration{discoveryInterval, time.Minute}, clock.slept); diff != "" {
				t.Errorf("waits before the barrier (-want +got):\n%s", diff)
			}
		}
		return nil
	}
	record, err := engine.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if record.Barrier != "103" {
		t.Errorf("barrier is %q", record.Barrier)
	}
	var states []State
	for _, r := range store.records(t) {
		states = append(states, r.State)
	}
	if diff := cmp.Diff([]State{StateSettling, StateRunning, StateCompleted}, states); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
}

func TestResumedRunKeepsItsBarrier(t *testing.T) {
	api, store, clock := newFakeAPI(3), &fakeStore{}, newFakeClock()
	ctx, cancel := context.WithCancel(t.Context())
	engine := newTestEngine(api, store)
	api.onPatch = func(string) error { cancel(); return ctx.Err() }
	if _, err := engine.Run(ctx); err == nil {
		t.Fatal("the run did not stop")
	}
	api.onPatch = nil
	api.write("ns/b", "v1")

	engine.Clock = clock
	engine.Discovery = lookFunc(func() look {
		t.Error("a resumed run looked at discovery again")
		return look{}
	})
	record, err := engine.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if record.Barrier != "103" || len(clock.slept) != 0 {
		t.Errorf("barrier is %q after waiting %v", record.Barrier, clock.slept)
	}
	want := Counters{Total: 4, Rewritten: 3, Current: 1}
	if diff := cmp.Diff(want, record.Counters); diff != "" {
		t.Errorf("counters (-want +got):\n%s", diff)
	}
}

func TestBarrierNeedsAResourceVersion(t *testing.T) {
	engine := newTestEngine(newFakeAPI(1), &fakeStore{})
	engine.Lister = listFunc(func() (*metav1.PartialObjectMetadataList, error) { return &metav1.PartialObjectMetadataList{}, nil })
	record, err := engine.Run(t.Context())
	if err != nil || record.State != StateAborted {
		t.Errorf("state is %s, error %v", record.State, err)
	}
}

type listFunc func() (*metav1.PartialObjectMetadataList, error)

func (f listFunc) List(context.Context, string, metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	return f()
}
