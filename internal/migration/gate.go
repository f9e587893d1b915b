// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// gate lets as many patches through as the API server takes: no more in flight
// than the limit, no more in a second than allowed, and none before the time
// that a server in trouble asked for.
type gate struct {
	clock Clock
	// rate counts every patch that is sent, whatever becomes of it.
	rate    *rate.Limiter
	metrics *Metrics

	mu       sync.Mutex
	limit    *limit
	inFlight int
	// freed is closed, and made anew, when there may be room.
	freed chan struct{}
	// held is until when nothing is sent.
	held time.Time
}

// newGate makes a gate for so many patches in flight at most, and so many in a
// second; 0 means any number of them.
func newGate(clock Clock, pace v1alpha1.MigrationPace, concurrency, perSecond int) *gate {
	limiter := rate.NewLimiter(rate.Inf, 1)
	if perSecond > 0 {
		limiter = rate.NewLimiter(rate.Limit(perSecond), 1)
	}
	return &gate{clock: clock, rate: limiter, limit: newLimit(pace, concurrency, clock.Now()), freed: make(chan struct{})}
}

// enter waits for room. Who enters must leave.
func (g *gate) enter(ctx context.Context) error {
	for {
		room, freed := g.take()
		if room {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-freed:
		}
	}
	if err := g.wait(ctx); err != nil {
		g.free()
		return err
	}
	return nil
}

// several reports whether more than one patch may be in flight.
func (g *gate) several() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.limit.allowed() > 1
}

func (g *gate) take() (room bool, freed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inFlight >= g.limit.allowed() {
		return false, g.freed
	}
	g.inFlight++
	g.metrics.flying(g.inFlight, g.limit.allowed())
	return true, nil
}

// wait is for the server that asked for time, and for the rate.
func (g *gate) wait(ctx context.Context) error {
	g.mu.Lock()
	now := g.clock.Now()
	pause := max(g.held.Sub(now), g.rate.ReserveN(now, 1).DelayFrom(now))
	g.mu.Unlock()
	if pause <= 0 {
		return ctx.Err()
	}
	g.metrics.heldBack(pause)
	return g.clock.Sleep(ctx, pause)
}

// leave gives the room back, and learns from how the patch went.
func (g *gate) leave(began time.Time, err error) {
	g.mu.Lock()
	now := g.clock.Now()
	switch {
	case err == nil:
		g.limit.succeeded(now.Sub(began), g.inFlight, now)
	case infrastructure(err):
		g.limit.failed(now)
		if seconds, asked := apierrors.SuggestsClientDelay(err); asked {
			g.held = later(g.held, now.Add(time.Duration(seconds)*time.Second))
		}
	}
	g.mu.Unlock()
	g.free()
}

func (g *gate) free() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inFlight--
	g.metrics.flying(g.inFlight, g.limit.allowed())
	close(g.freed)
	g.freed = make(chan struct{})
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
