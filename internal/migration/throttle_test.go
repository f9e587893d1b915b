// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestThrottleKeepsTheRate(t *testing.T) {
	clock := newFakeClock()
	g := newThrottle(clock, v1alpha1.MigrationFast, 8, 4)
	start := clock.Now()
	for range 9 {
		expect.NoError(t, g.acquire(t.Context()))
		g.releaseAfter(clock.Now(), nil)
	}
	expect.Equal(t, "time of 9 patches at 4 in a second, after the first", 2*time.Second, clock.Now().Sub(start))
}

func TestThrottleHonoursRetryAfter(t *testing.T) {
	clock := newFakeClock()
	g := newThrottle(clock, v1alpha1.MigrationFast, 8, 0)
	expect.NoError(t, g.acquire(t.Context()))
	g.releaseAfter(clock.Now(), overloaded(7))
	expect.NoError(t, g.acquire(t.Context()))
	expect.Equal(t, "waits", []time.Duration{7 * time.Second}, clock.slept)
}

func TestThrottleKeepsTheLimit(t *testing.T) {
	g := newThrottle(newFakeClock(), v1alpha1.MigrationFast, 2, 0)
	g.limit.value = 2
	expect.NoError(t, g.acquire(t.Context()))
	expect.NoError(t, g.acquire(t.Context()))
	room, _ := g.tryAcquire()
	expect.Equal(t, "a third patch was admitted", false, room)
	entered := make(chan error)
	go func() { entered <- g.acquire(t.Context()) }()
	g.releaseAfter(g.clock.Now(), nil)
	expect.NoError(t, <-entered)
}

func TestThrottleEndsWithTheContext(t *testing.T) {
	tests := map[string]func(*throttle) error{
		"no room": func(g *throttle) error { _, _ = g.tryAcquire(); return nil },
		"held":    func(g *throttle) error { g.notBefore = g.clock.Now().Add(time.Hour); return nil },
		"free":    func(*throttle) error { return nil },
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			g := newThrottle(newFakeClock(), v1alpha1.MigrationFast, 1, 0)
			expect.NoError(t, prepare(g))
			before := g.inFlight
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := g.acquire(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("error is %v", err)
			}
			expect.Equal(t, "in flight", before, g.inFlight)
		})
	}
}

// server is an API server that processes as many patches concurrently as it has processors, and
// delays the others.
type server struct {
	processors float64
	latency    time.Duration
}

func (s server) latencyAt(inFlight int) time.Duration {
	return time.Duration(float64(s.latency) * max(1, float64(inFlight)/s.processors))
}

// drive sends patches for some windows, each with as many in flight as the limit allows, and
// returns the limit.
func drive(l *concurrencyLimit, now *time.Time, windows int, s server) int {
	for range windows {
		*now = now.Add(minWindow)
		inFlight := l.allowed()
		for range max(minSamples, 2*inFlight) {
			l.succeeded(s.latencyAt(inFlight), inFlight, *now)
		}
	}
	return l.allowed()
}

// span is the expected range of a limit.
type span struct{ low, high int }

func TestLimitFollowsTheServer(t *testing.T) {
	tests := map[string]struct {
		server server
		most   int
		gentle span
		fast   span
	}{
		"unlimited":                     {server{processors: 1000, latency: 5 * time.Millisecond}, 32, span{32, 32}, span{32, 32}},
		"eight processors":              {server{processors: 8, latency: 5 * time.Millisecond}, 64, span{8, 10}, span{64, 64}},
		"two processors":                {server{processors: 2, latency: 5 * time.Millisecond}, 64, span{2, 3}, span{64, 64}},
		"one and a half processors":     {server{processors: 1.5, latency: 5 * time.Millisecond}, 64, span{1, 2}, span{64, 64}},
		"one processor":                 {server{processors: 1, latency: 50 * time.Millisecond}, 64, span{1, 2}, span{3, 8}},
		"a maximum of one":              {server{processors: 1000, latency: time.Millisecond}, 1, span{1, 1}, span{1, 1}},
		"a clock too coarse to measure": {server{processors: 1000}, 32, span{32, 32}, span{32, 32}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for pace, want := range map[v1alpha1.MigrationPace]span{v1alpha1.MigrationGentle: tt.gentle, v1alpha1.MigrationFast: tt.fast} {
				now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
				l := newConcurrencyLimit(pace, tt.most, now)
				if got := drive(l, &now, 100, tt.server); got < want.low || got > want.high {
					t.Errorf("%s: limit is %d, want %d to %d", pace, got, want.low, want.high)
				}
			}
		})
	}
}

func TestLimitFallsAndRecoversWithTheServer(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	l := newConcurrencyLimit(v1alpha1.MigrationFast, 32, now)
	fast := server{processors: 1000, latency: 5 * time.Millisecond}
	drive(l, &now, 20, fast)
	if got := drive(l, &now, 5, server{processors: 1, latency: 10 * time.Millisecond}); got > 12 {
		t.Errorf("limit is %d under load, want it to fall", got)
	}
	expect.Equal(t, "limit after the load", 32, drive(l, &now, 40, fast))
}

func TestLimitHalvesOncePerWindowOnErrors(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	l := newConcurrencyLimit(v1alpha1.MigrationFast, 32, now)
	drive(l, &now, 20, server{processors: 1000, latency: time.Millisecond})
	for range 10 {
		l.failed(now)
	}
	expect.Equal(t, "limit after errors", 16, l.allowed())
	for range 10 {
		now = now.Add(minWindow)
		l.failed(now)
	}
	expect.Equal(t, "limit after continued errors", 1, l.allowed())
}

func TestUnusedLimitDoesNotGrow(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	l := newConcurrencyLimit(v1alpha1.MigrationFast, 32, now)
	for range 1000 {
		now = now.Add(minWindow)
		l.succeeded(time.Millisecond, 1, now)
	}
	if got := l.allowed(); got > 2 {
		t.Errorf("limit is %d with one patch in flight, want 2 at most", got)
	}
	expect.Equal(t, "the baseline is not a number", false, math.IsNaN(l.baseline))
}

// A limit that was too high is rarely tried again.
func TestGentleLimitRarelyExceedsTheServer(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	l := newConcurrencyLimit(v1alpha1.MigrationGentle, 32, now)
	tooMuch := 0
	for range 100 {
		if drive(l, &now, 1, server{processors: 1, latency: 50 * time.Millisecond}) > 1 {
			tooMuch++
		}
	}
	if tooMuch < 2 || tooMuch > 6 {
		t.Errorf("the limit was above 1 in %d of 100 windows, want 2 to 6", tooMuch)
	}
}
