// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"math"
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

const (
	// calmInterval is how often the latency of a single patch in flight is measured
	// anew: it changes for other reasons, too.
	calmInterval = 30 * time.Second
	// minSamples and minWindow bound how soon the limit moves again: it follows
	// averages, and not single patches.
	minSamples = 16
	minWindow  = 250 * time.Millisecond
	// slack is for latencies that vary by themselves: the calm latency is the least
	// average that was seen.
	slack = 1.2
	// shrink is the most that one window takes from the limit, and what trouble does.
	shrink = 0.5
	// grow is the part that a window adds, at least one.
	grow = 1.0 / 8
	// respite is how many windows pass before a limit that has shrunk grows again:
	// each try costs others. Each that is in vain doubles it, up to longRespite.
	respite     = 8
	longRespite = 128
)

// worth is what more patches in flight must bring: twice as many in flight must
// mean that 2^worth as many are done in a second, since there was one in flight.
// An API server without a free processor gives nothing, one with many gives 1.
func worth(pace v1alpha1.MigrationPace) float64 {
	if pace == v1alpha1.MigrationFast {
		return 0.1
	}
	return 1
}

// limit is the number of patches that may be in flight. It grows while more in
// flight are worth it, and shrinks by the ratio of the latency that would be to
// that of the last window: the gradient of Netflix's concurrency-limits, with the
// measurement in calm that Envoy's adaptive concurrency adds. It halves on
// trouble, once in a window.
//
// By Little's law n patches in flight of latency r are n/r patches a second: they
// are worth it while r is at most n^(1-worth) times what it is in calm. Patches
// beyond that only wait in the API server, and everybody else with them.
type limit struct {
	worth   float64
	maximum float64
	value   float64
	// shrunk is set once the limit was too high: until then it doubles, as it begins
	// far from where it is going to be. holding is for how many windows it stays,
	// respite for how many after the next that is too high, and trying is set in the
	// first window of a higher one. slow is set after a window that was too slow.
	shrunk  bool
	holding int
	respite int
	trying  bool
	slow    bool

	// baseline is the calm latency, in seconds.
	baseline float64
	// measuring is set while it is measured, after which the limit is resumed.
	measuring bool
	resumed   float64
	measured  time.Time

	// The open window: when it began, the patches that do not count because they
	// were sent before, and those that do.
	began    time.Time
	stale    int
	samples  int
	total    time.Duration
	peak     int
	troubled bool
}

func newLimit(pace v1alpha1.MigrationPace, maximum int, now time.Time) *limit {
	return &limit{worth: worth(pace), maximum: float64(maximum), value: 1, respite: respite, measuring: true, resumed: 1, began: now}
}

// allowed is at least 1 and never more than the maximum.
func (l *limit) allowed() int { return int(l.value) }

// succeeded takes note of a patch that was answered as it should be, while so
// many were in flight.
func (l *limit) succeeded(latency time.Duration, inFlight int, now time.Time) {
	if l.stale > 0 {
		l.stale--
		return
	}
	l.samples++
	l.total += latency
	l.peak = max(l.peak, inFlight)
	if l.samples < max(minSamples, 2*l.allowed()) || now.Sub(l.began) < minWindow {
		return
	}
	average := l.total.Seconds() / float64(l.samples)
	if l.measuring {
		l.measuring, l.measured = false, now
		l.baseline = average
		l.set(l.resumed)
	} else {
		l.adapt(average)
	}
	l.open(now)
	if now.Sub(l.measured) >= calmInterval {
		l.measure()
	}
}

// measure has the next window show the calm latency.
func (l *limit) measure() {
	l.stale = l.allowed()
	l.measuring, l.resumed = true, l.value
	l.set(1)
}

// failed takes note of an API server in trouble: overloaded, away, or timing out.
func (l *limit) failed(now time.Time) {
	if l.troubled && now.Sub(l.began) < minWindow {
		return
	}
	l.lower(l.value * shrink)
	l.resumed = l.value
	l.open(now)
	l.troubled = true
}

// adapt leaves a limit alone that is not what holds patches back. One slow window of
// a limit that was borne before says little: a page was read, or garbage collected.
func (l *limit) adapt(average float64) {
	l.baseline = min(l.baseline, average)
	bearable := slack * l.baseline * math.Pow(float64(l.allowed()), 1-l.worth)
	slow, tried := average > bearable && l.value >= 2, l.trying
	if slow && !l.slow && !tried {
		l.slow = true
		return
	}
	l.slow, l.trying = false, false
	switch {
	case slow:
		l.lower(min(l.value-1, l.value*max(shrink, bearable/average)))
	case l.peak < l.allowed():
	case l.holding > 0:
		l.holding--
	case l.shrunk:
		l.raise(l.value + max(1, l.value*grow))
	default:
		l.raise(2 * l.value)
	}
	switch {
	case tried && slow:
		l.respite = min(2*l.respite, longRespite)
	case tried:
		l.respite = respite
	}
}

func (l *limit) raise(value float64) {
	l.trying = l.value < l.maximum
	l.set(value)
}

func (l *limit) lower(value float64) {
	l.shrunk, l.holding = true, l.respite
	l.set(value)
}

func (l *limit) set(value float64) { l.value = min(max(value, 1), l.maximum) }

func (l *limit) open(now time.Time) {
	l.began, l.stale, l.samples, l.total, l.peak, l.troubled = now, 0, 0, 0, 0, false
}
