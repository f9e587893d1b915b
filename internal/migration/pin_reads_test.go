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
		reads    int
	}{
		"recovers":       {err: unreachable(), failures: maxAttempts - 1, reads: maxAttempts},
		"unreachable":    {err: unreachable(), failures: maxAttempts, want: "connection refused", reads: maxAttempts},
		"unavailable":    {err: unavailable(), failures: maxAttempts, want: "etcd is starting", reads: maxAttempts},
		"may not be got": {err: withoutRight("get", testPin.Name), failures: 1, want: "cannot get resource", reads: 1},
		"unauthorized":   {err: unauthorized(), failures: 1, want: "token expired", reads: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			api, store := newFakeAPI(12), &fakeStore{}
			reads, from := 0, 0
			api.onDefinitionRead = func() error {
				if len(api.patched) < 5 {
					return nil
				}
				if from == 0 {
					from = len(api.patched)
				}
				reads++
				if reads > tt.failures {
					return nil
				}
				expect.Equal(t, "patches with an unread pin", from, len(api.patched))
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
			if record.Finished() || reads != tt.reads || len(api.patched) != 5 {
				t.Errorf("record is %+v after %d reads, patched %v", record, reads, api.patched)
			}
			// The next pod continues.
			if record = mustRun(t, newTestEngine(api, store)); !record.Complete() {
				t.Errorf("record is %+v", record)
			}
		})
	}
}

// A read is valid for its interval from its start, and is repeated after half of it.
func TestAwaitPinReadsInIntervals(t *testing.T) {
	tests := map[string]struct {
		since time.Duration
		took  time.Duration
		want  int
	}{
		"at once":                {want: 1},
		"just before":            {since: pinInterval/2 - 1, want: 1},
		"half an interval later": {since: pinInterval / 2, want: 2},
		"an interval later":      {since: pinInterval, want: 2},
		"the read took as long":  {took: pinInterval, want: 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			api, clock := newFakeAPI(0), newFakeClock()
			api.onDefinitionRead = func() error { return clock.Sleep(t.Context(), tt.took) }
			engine := newTestEngine(api, &fakeStore{})
			engine.Clock = clock
			for range 2 {
				expect.NoError(t, engine.awaitPin(t.Context()))
				expect.NoError(t, clock.Sleep(t.Context(), tt.since))
			}
			expect.Equal(t, "reads", tt.want, api.definitionReads)
		})
	}
}

// The worker that reads again blocks the others only if the last read is too old.
func TestAwaitPinWaitsOnlyIfNeeded(t *testing.T) {
	api, clock := newFakeAPI(0), newFakeClock()
	engine := newTestEngine(api, &fakeStore{})
	engine.Clock = clock
	expect.NoError(t, engine.awaitPin(t.Context()))
	expect.NoError(t, clock.Sleep(t.Context(), pinInterval/2))

	started, answer := make(chan bool), make(chan bool)
	api.onDefinitionRead = func() error {
		started <- true
		<-answer
		return nil
	}
	reader := make(chan error)
	go func() { reader <- engine.awaitPin(t.Context()) }()
	<-started
	expect.NoError(t, engine.awaitPin(t.Context()))

	expect.NoError(t, clock.Sleep(t.Context(), pinInterval/2))
	waiting := make(chan error)
	go func() { waiting <- engine.awaitPin(t.Context()) }()
	select {
	case err := <-waiting:
		t.Errorf("a worker used a read that is too old: %v", err)
	case <-time.After(50 * time.Millisecond):
		answer <- true
		<-started // the first read is too old for the second worker
		answer <- true
		expect.NoError(t, <-waiting)
	}
	expect.NoError(t, <-reader)
}

func TestAwaitPinEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := newTestEngine(newFakeAPI(0), &fakeStore{}).awaitPin(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}
