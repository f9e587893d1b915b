// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
)

// The first patch of each page waits for the list of the next one.
func TestPagesAreReadAhead(t *testing.T) {
	api := newFakeAPI(12)
	second, third := make(chan struct{}), make(chan struct{})
	begun := map[string]chan struct{}{"112|ns/a004": second, "112|ns/a009": third}
	engine := newTestEngine(api, &fakeStore{})
	engine.Concurrency = 2
	engine.Lister = listerFunc(func(ctx context.Context, place Place, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
		engine.allowTwo()
		if page := begun[options.Continue]; page != nil {
			close(page)
		}
		return api.List(ctx, place, options)
	})
	engine.Patcher = patcherFunc(func(ctx context.Context, patch Patch) (*metav1.PartialObjectMetadata, error) {
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
	if diff := cmp.Diff([]string{"", "112|ns/a004", "112|ns/a009"}, pages); diff != "" {
		t.Errorf("pages that were listed (-want +got):\n%s", diff)
	}
}

// A list beside a patch is as much as two patches: none is read ahead where those are
// too many.
func TestNoPageIsReadAheadBesideASinglePatch(t *testing.T) {
	api := newFakeAPI(12)
	engine := newTestEngine(api, &fakeStore{})
	engine.Patcher = patcherFunc(func(ctx context.Context, patch Patch) (*metav1.PartialObjectMetadata, error) {
		if engine.ahead != nil {
			t.Errorf("a page is read beside the patch of %s", patch.Name)
		}
		return api.Patch(ctx, patch)
	})
	if record := mustRun(t, engine); !record.Complete() || record.Rewritten != 12 {
		t.Errorf("record is %+v", record)
	}
}

// allowTwo lets two patches be in flight.
func (e *Engine) allowTwo() {
	e.gate.mu.Lock()
	defer e.gate.mu.Unlock()
	e.gate.limit.set(2)
}

// Nothing reads any more when a run has ended.
func TestPageAheadEndsWithTheRun(t *testing.T) {
	api := newFakeAPI(12)
	api.definition.Generation++
	ended := make(chan error, 1)
	engine := newTestEngine(api, &fakeStore{})
	engine.Lister = listerFunc(func(ctx context.Context, _ Place, _ metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	})
	engine.Concurrency = 2
	engine.prepare()
	engine.allowTwo()
	engine.readAhead(t.Context(), "112|ns/a004")
	if record := mustRun(t, engine); record.State != contract.StateAborted {
		t.Errorf("record is %+v", record)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the list ended with %v", err)
		}
	default:
		t.Error("the list goes on")
	}
}

type listerFunc func(context.Context, Place, metav1.ListOptions) (*metav1.PartialObjectMetadataList, error)

func (f listerFunc) List(ctx context.Context, place Place, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	return f(ctx, place, options)
}

type patcherFunc func(context.Context, Patch) (*metav1.PartialObjectMetadata, error)

func (f patcherFunc) Patch(ctx context.Context, patch Patch) (*metav1.PartialObjectMetadata, error) {
	return f(ctx, patch)
}
