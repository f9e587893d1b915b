// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestPassReadsConsistentPages(t *testing.T) {
	api, store := newFakeAPI(12), &fakeStore{}
	record := mustRun(t, newTestEngine(api, store))
	want := []metav1.ListOptions{
		{Limit: 1},
		{Limit: 1},
		{Limit: 5, ResourceVersion: "112", ResourceVersionMatch: metav1.ResourceVersionMatchExact},
		{Limit: 5, Continue: "112|ns/a004"},
		{Limit: 5, Continue: "112|ns/a009"},
	}
	expect.Equal(t, "lists", want, api.lists)
	expect.Equal(t, "counters", contract.Counters{Total: 12, Rewritten: 12}, record.Counters)
	for i, r := range store.records(t) {
		if running := r.State == contract.StateRunning && i > 1; running && r.Total != 12 {
			t.Errorf("record %d estimates %d objects, want 12", i, r.Total)
		}
	}
}

// firstPassExpires rejects the tokens of the first pass.
func firstPassExpires() func(metav1.ListOptions) error {
	passes := 0
	return func(options metav1.ListOptions) error {
		switch {
		case options.Continue == "" && options.Limit > 1:
			passes++
		case options.Continue != "" && passes == 1:
			return expiredError("")
		}
		return nil
	}
}

// pagesExpire rejects all pages, and offers a token.
func pagesExpire(token string) func(metav1.ListOptions) error {
	return func(options metav1.ListOptions) error {
		if options.Limit == 1 {
			return nil
		}
		return expiredError(token)
	}
}

// The failing page is listed once as a prefetch, and then again with retries.
func TestListErrors(t *testing.T) {
	tests := map[string]struct {
		err     error
		want    contract.State
		message string
		calls   int
	}{
		"unauthorized":   {err: unauthorized(), want: contract.StateRunning, calls: 1},
		"forbidden":      {err: withoutRight("list", ""), want: contract.StateRunning, calls: 1},
		"endpoint gone":  {err: generic(http.StatusNotFound, ""), want: contract.StateAborted, message: "does not serve crontabs.example.com at version v1 any more", calls: 1},
		"bad request":    {err: apierrors.NewBadRequest("continue is not valid"), want: contract.StateAborted, message: "not valid", calls: 1},
		"cannot convert": {err: unconvertible(), want: contract.StateAborted, message: "port is missing", calls: 5},
		"unreachable":    {err: unreachable(), want: contract.StateRunning, calls: maxAttempts},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			api, store := newFakeAPI(12), &fakeStore{}
			calls := 0
			engine := newTestEngine(api, store)
			engine.Concurrency = 2
			api.onList = func(options metav1.ListOptions) error {
				engine.allowTwo()
				if options.Continue == "" {
					return nil
				}
				calls++
				return tt.err
			}
			_, err := engine.Run(t.Context())
			expect.Equal(t, "it ended without an error", tt.want == contract.StateAborted, err == nil)
			records := store.records(t)
			last := records[len(records)-1]
			expect.Equal(t, "state", tt.want, last.State)
			expect.Equal(t, "lists", 1+tt.calls, calls)
			if tt.message != "" {
				wantError(t, errors.New(last.Message), tt.message)
			}
			if last.Complete() || last.Rewritten != 5 {
				t.Errorf("record is %+v", last)
			}
		})
	}
}

// Every patch waits until as many as the limit allows are in flight.
func TestPatchesInFlightReachTheLimit(t *testing.T) {
	const want = 4
	api := newFakeAPI(8)
	engine := newTestEngine(api, &fakeStore{})
	engine.Concurrency = 8
	gate := &gatedPatcher{Patcher: api, want: want, full: make(chan struct{})}
	engine.Patcher = gate
	engine.prepare()
	engine.throttle.limit.value = want
	migrate := func(ctx context.Context, object *metav1.PartialObjectMetadata) (result, error) {
		return engine.migrateObject(ctx, object, "108")
	}
	expect.NoError(t, engine.forEach(t.Context(), nil, api.all(), migrate, func(result) error { return nil }))
	expect.Equal(t, "patches in flight", want, gate.most.Load())
}

func mustRun(t *testing.T, engine *Engine) contract.Record {
	t.Helper()
	record, err := engine.Run(t.Context())
	expect.NoError(t, err)
	expect.Equal(t, "finished", true, record.Finished())
	return record
}

type gatedPatcher struct {
	Patcher
	want     int32
	full     chan struct{}
	inFlight atomic.Int32
	most     atomic.Int32
	once     sync.Once
}

func (g *gatedPatcher) Patch(ctx context.Context, patch Patch) (*metav1.PartialObjectMetadata, error) {
	n := g.inFlight.Add(1)
	defer g.inFlight.Add(-1)
	for most := g.most.Load(); n > most && !g.most.CompareAndSwap(most, n); most = g.most.Load() {
	}
	if n == g.want {
		g.once.Do(func() { close(g.full) })
	}
	<-g.full
	return g.Patcher.Patch(ctx, patch)
}

// The first patch of each page waits for the list of the next one.
func TestPagesArePrefetched(t *testing.T) {
	api := newFakeAPI(12)
	second, third := make(chan struct{}), make(chan struct{})
	begun := map[string]chan struct{}{"112|ns/a004": second, "112|ns/a009": third}
	engine := newTestEngine(api, &fakeStore{})
	engine.Concurrency = 2
	engine.Lister = listerFunc(func(ctx context.Context, scope ListScope, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
		engine.allowTwo()
		if page := begun[options.Continue]; page != nil {
			close(page)
		}
		return api.List(ctx, scope, options)
	})
	engine.Patcher = patchFunc(func(ctx context.Context, patch Patch) (*metav1.PartialObjectMetadata, error) {
		switch patch.Name {
		case "a000":
			<-second
		case "a005":
			<-third
		}
		return api.Patch(ctx, patch)
	})
	if record := mustRun(t, engine); !record.Complete() || record.Rewritten != 12 {
		t.Errorf("record is %+v", record)
	}
	var pages []string
	for _, options := range api.lists {
		if options.Limit > 1 {
			pages = append(pages, options.Continue)
		}
	}
	expect.Equal(t, "pages that were listed", []string{"", "112|ns/a004", "112|ns/a009"}, pages)
}

// A list is as expensive as many patches: nothing is prefetched while only one patch may be in
// flight.
func TestNoPrefetchWithASinglePatch(t *testing.T) {
	api := newFakeAPI(12)
	engine := newTestEngine(api, &fakeStore{})
	engine.Patcher = patchFunc(func(ctx context.Context, patch Patch) (*metav1.PartialObjectMetadata, error) {
		if engine.prefetched != nil {
			t.Errorf("a page is prefetched during the patch of %s", patch.Name)
		}
		return api.Patch(ctx, patch)
	})
	if record := mustRun(t, engine); !record.Complete() || record.Rewritten != 12 {
		t.Errorf("record is %+v", record)
	}
}

// allowTwo allows two patches in flight.
func (e *Engine) allowTwo() {
	e.throttle.mu.Lock()
	defer e.throttle.mu.Unlock()
	e.throttle.limit.set(2)
}

// The prefetch is cancelled when the run ends.
func TestPrefetchEndsWithTheRun(t *testing.T) {
	api := newFakeAPI(12)
	api.definition.Generation++
	ended := make(chan error, 1)
	engine := newTestEngine(api, &fakeStore{})
	engine.Lister = listerFunc(func(ctx context.Context, _ ListScope, _ metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	})
	engine.Concurrency = 2
	engine.prepare()
	engine.allowTwo()
	engine.startPrefetch(t.Context(), "112|ns/a004")
	if record := mustRun(t, engine); record.State != contract.StateAborted {
		t.Errorf("record is %+v", record)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the list ended with %v", err)
		}
	default:
		t.Error("the list continues")
	}
}

type listerFunc func(context.Context, ListScope, metav1.ListOptions) (*metav1.PartialObjectMetadataList, error)

func (f listerFunc) List(ctx context.Context, scope ListScope, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	return f(ctx, scope, options)
}
