// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
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

// A look is good for its interval from when it began, however long it took, and
// followed by another one when half of that is over.
func TestAwaitPinLooksNowAndThen(t *testing.T) {
	tests := map[string]struct {
		since time.Duration
		took  time.Duration
		want  int
	}{
		"at once":                {want: 1},
		"just before":            {since: pinInterval/2 - 1, want: 1},
		"half an interval later": {since: pinInterval / 2, want: 2},
		"an interval later":      {since: pinInterval, want: 2},
		"the look took as long":  {took: pinInterval, want: 2},
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

// The worker that looks again keeps no other waiting while the last look is good,
// and every other one when it is not.
func TestAwaitPinWaitsOnlyForALookThatIsNeeded(t *testing.T) {
	api, clock := newFakeAPI(0), newFakeClock()
	engine := newTestEngine(api, &fakeStore{})
	engine.Clock = clock
	expect.NoError(t, engine.awaitPin(t.Context()))
	expect.NoError(t, clock.Sleep(t.Context(), pinInterval/2))

	asked, answer := make(chan bool), make(chan bool)
	api.onLook = func() error {
		asked <- true
		<-answer
		return nil
	}
	looker := make(chan error)
	go func() { looker <- engine.awaitPin(t.Context()) }()
	<-asked
	expect.NoError(t, engine.awaitPin(t.Context()))

	expect.NoError(t, clock.Sleep(t.Context(), pinInterval/2))
	waiting := make(chan error)
	go func() { waiting <- engine.awaitPin(t.Context()) }()
	select {
	case err := <-waiting:
		t.Errorf("a worker passed on a look that is good no more: %v", err)
	case <-time.After(50 * time.Millisecond):
		answer <- true
		<-asked // what the first look saw is too old for the second worker
		answer <- true
		expect.NoError(t, <-waiting)
	}
	expect.NoError(t, <-looker)
}

func TestAwaitPinEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := newTestEngine(newFakeAPI(0), &fakeStore{}).awaitPin(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}
