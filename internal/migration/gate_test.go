// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

func TestGateKeepsTheRate(t *testing.T) {
	clock := newFakeClock()
	g := newGate(clock, v1alpha1.MigrationFast, 8, 4)
	start := clock.Now()
	for range 9 {
		must(t, g.enter(t.Context()))
		g.leave(clock.Now(), nil)
	}
	if took := clock.Now().Sub(start); took != 2*time.Second {
		t.Errorf("9 patches took %s at 4 in a second, want 2s after the first", took)
	}
}

func TestGateWaitsAsLongAsTheServerAsks(t *testing.T) {
	clock := newFakeClock()
	g := newGate(clock, v1alpha1.MigrationFast, 8, 0)
	must(t, g.enter(t.Context()))
	g.leave(clock.Now(), overloaded(7))
	must(t, g.enter(t.Context()))
	if diff := cmp.Diff([]time.Duration{7 * time.Second}, clock.slept); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
}

func TestGateLetsNoMoreInThanTheLimit(t *testing.T) {
	g := newGate(newFakeClock(), v1alpha1.MigrationFast, 2, 0)
	g.limit.value = 2
	must(t, g.enter(t.Context()))
	must(t, g.enter(t.Context()))
	if room, _ := g.take(); room {
		t.Fatal("a third patch was let in")
	}
	entered := make(chan error)
	go func() { entered <- g.enter(t.Context()) }()
	g.leave(g.clock.Now(), nil)
	must(t, <-entered)
}

func TestGateEndsWithTheContext(t *testing.T) {
	tests := map[string]func(*gate) error{
		"no room": func(g *gate) error { _, _ = g.take(); return nil },
		"held":    func(g *gate) error { g.held = g.clock.Now().Add(time.Hour); return nil },
		"free":    func(*gate) error { return nil },
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			g := newGate(newFakeClock(), v1alpha1.MigrationFast, 1, 0)
			must(t, prepare(g))
			before := g.inFlight
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := g.enter(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("error is %v", err)
			}
			if g.inFlight != before {
				t.Errorf("%d in flight, were %d", g.inFlight, before)
			}
		})
	}
}
