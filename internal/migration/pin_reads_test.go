// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestDefinitionThatCannotBeRead(t *testing.T) {
	tests := map[string]struct {
		err      error
		failures int
		want     string
		looks    int
	}{
		"recovers":       {err: unreachable(), failures: patience - 1, looks: patience},
		"stays away":     {err: unreachable(), failures: patience, want: "connection refused", looks: patience},
		"unavailable":    {err: unavailable(), failures: patience, want: "etcd is starting", looks: patience},
		"may not be got": {err: withoutRight("get", testPin.Name), failures: 1, want: "cannot get resource", looks: 1},
		"unauthorized":   {err: unauthorized(), failures: 1, want: "token expired", looks: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			api, store := newFakeAPI(12), &fakeStore{}
			looks, from := 0, 0
			api.onLook = func() error {
				if len(api.patched) < 5 {
					return nil
				}
				if from == 0 {
					from = len(api.patched)
				}
				looks++
				if looks > tt.failures {
					return nil
				}
				if len(api.patched) != from {
					t.Errorf("%d patches on an unread pin", len(api.patched)-from)
				}
				return tt.err
			}
			record, err := newTestEngine(api, store).Run(t.Context())
			if tt.want == "" {
				if err != nil || !record.Complete() {
					t.Errorf("record is %+v, error %v", record, err)
				}
				return
			}
			wantError(t, err, tt.want)
			if record.Finished() || looks != tt.looks || len(api.patched) != 5 {
				t.Errorf("record is %+v after %d looks, patched %v", record, looks, api.patched)
			}
			// The next pod goes on.
			if record = mustRun(t, newTestEngine(api, store)); !record.Complete() {
				t.Errorf("record is %+v", record)
			}
		})
	}
}

// A look is good for its interval from when it began, however long it took.
func TestAwaitPinLooksOnceASecond(t *testing.T) {
	tests := map[string]struct {
		since time.Duration
		took  time.Duration
		want  int
	}{
		"at once":               {want: 1},
		"just before":           {since: pinInterval - 1, want: 1},
		"an interval later":     {since: pinInterval, want: 2},
		"the look took as long": {took: pinInterval, want: 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			api, clock := newFakeAPI(0), newFakeClock()
			api.onLook = func() error { return clock.Sleep(t.Context(), tt.took) }
			engine := newTestEngine(api, &fakeStore{})
			engine.Clock = clock
			for range 2 {
				if err := engine.awaitPin(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := clock.Sleep(t.Context(), tt.since); err != nil {
					t.Fatal(err)
				}
			}
			if api.looks != tt.want {
				t.Errorf("%d looks, want %d", api.looks, tt.want)
			}
		})
	}
}

func TestAwaitPinEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := newTestEngine(newFakeAPI(0), &fakeStore{}).awaitPin(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}
