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

// throttle limits the patches that are sent: the number in flight, by concurrencyLimit; the number
// per second, by the policy; and none before the time that an overloaded API server asked for.
type throttle struct {
	clock Clock
	// rate counts every patch that is sent, also failed ones.
	rate    *rate.Limiter
	metrics *Metrics

	mu       sync.Mutex
	limit    *concurrencyLimit
	inFlight int
	// released is closed and replaced whenever a patch may be able to start.
	released chan struct{}
	// notBefore is the time before which nothing is sent.
	notBefore time.Time
}

// newThrottle returns a throttle with these limits of patches in flight, and per second; perSecond
// 0 means no limit.
func newThrottle(clock Clock, pace v1alpha1.MigrationPace, concurrency, perSecond int) *throttle {
	return &throttle{clock: clock, rate: NewRateLimiter(perSecond), limit: newConcurrencyLimit(pace, concurrency, clock.Now()), released: make(chan struct{})}
}

// NewRateLimiter returns a limiter of patches per second; 0 means no limit.
func NewRateLimiter(perSecond int) *rate.Limiter {
	if perSecond == 0 {
		return rate.NewLimiter(rate.Inf, 1)
	}
	return rate.NewLimiter(rate.Limit(perSecond), 1)
}

// acquire waits until a patch may be sent. The caller must release it.
func (t *throttle) acquire(ctx context.Context) error {
	for {
		room, freed := t.tryAcquire()
		if room {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-freed:
		}
	}
	if err := t.awaitTurn(ctx); err != nil {
		t.release()
		return err
	}
	return nil
}

// allowsSeveral reports whether more than one patch may be in flight.
func (t *throttle) allowsSeveral() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.limit.allowed() > 1
}

func (t *throttle) tryAcquire() (room bool, freed <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inFlight >= t.limit.allowed() {
		return false, t.released
	}
	t.inFlight++
	t.metrics.setInFlight(t.inFlight, t.limit.allowed())
	return true, nil
}

// awaitTurn waits for the rate limit, and until the time that an API server asked for.
func (t *throttle) awaitTurn(ctx context.Context) error {
	t.mu.Lock()
	now := t.clock.Now()
	pause := max(t.notBefore.Sub(now), t.rate.ReserveN(now, 1).DelayFrom(now))
	t.mu.Unlock()
	if pause <= 0 {
		return ctx.Err()
	}
	t.metrics.addThrottled(pause)
	return t.clock.Sleep(ctx, pause)
}

// releaseAfter releases a patch that was sent at that time, and adapts the limit to
// its latency or error.
func (t *throttle) releaseAfter(began time.Time, err error) {
	t.mu.Lock()
	now := t.clock.Now()
	switch {
	case err == nil:
		t.limit.succeeded(now.Sub(began), t.inFlight, now)
	case infrastructure(err):
		t.limit.failed(now)
		if seconds, asked := apierrors.SuggestsClientDelay(err); asked {
			if until := now.Add(time.Duration(seconds) * time.Second); until.After(t.notBefore) {
				t.notBefore = until
			}
		}
	}
	t.mu.Unlock()
	t.release()
}

func (t *throttle) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inFlight--
	t.metrics.setInFlight(t.inFlight, t.limit.allowed())
	close(t.released)
	t.released = make(chan struct{})
}

const (
	// baselineInterval is how often the latency of a single patch in flight is measured, because it
	// varies with other load.
	baselineInterval = 30 * time.Second
	// minSamples and minWindow bound how often the limit changes: it follows averages, not single
	// patches.
	minSamples = 16
	minWindow  = 250 * time.Millisecond
	// tolerance allows for random variation of latencies: the baseline is the lowest measured
	// average.
	tolerance = 1.2
	// shrink bounds the reduction of the limit by one window or error.
	shrink = 0.5
	// growth is the fraction that one window adds to the limit, at least one.
	growth = 1.0 / 8
	// cooldown is the number of windows before a limit that has shrunk grows again, because each
	// attempt affects other clients. Each failed attempt doubles it, up to maxCooldown.
	cooldown    = 8
	maxCooldown = 128
)

// requiredGain is the throughput that more patches in flight must bring: twice as many in flight
// must mean 2^gain as many per second. An API server without idle processors gives 0, one with many
// gives 1.
func requiredGain(pace v1alpha1.MigrationPace) float64 {
	if pace == v1alpha1.MigrationFast {
		return 0.1
	}
	return 1
}

// concurrencyLimit is the number of patches that may be in flight. It grows while more in flight
// bring the required gain, and shrinks by the ratio of the acceptable latency to that of the last
// window. This is the gradient algorithm of Netflix's concurrency-limits, with the baseline
// measurement of Envoy's adaptive concurrency. The limit halves on errors, once per window.
//
// By Little's law, n patches in flight with latency r are n/r patches per second: the gain is
// reached while r is at most n^(1-gain) times the baseline. Patches beyond that only wait in the
// API server, and delay all other clients.
type concurrencyLimit struct {
	gain    float64
	maximum float64
	value   float64
	// shrunk is set once the limit was too high. Until then it doubles, because it starts far below
	// its final value. cooldownLeft is the number of windows before it may grow, and cooldown that
	// number after the next window that is too slow. probing is set in the first window of a higher
	// limit, and slow after a window that was too slow.
	shrunk       bool
	cooldownLeft int
	cooldown     int
	probing      bool
	slow         bool

	// baseline is the latency of a single patch in flight, in seconds.
	baseline float64
	// measuring is set while the baseline is measured. After that, the limit becomes resumeValue.
	measuring    bool
	resumeValue  float64
	baselineTime time.Time

	// The current window: when it began, how many patches to ignore because they were sent before
	// it, and the samples.
	windowStart time.Time
	ignored     int
	samples     int
	total       time.Duration
	peak        int
	hadErrors   bool
}

func newConcurrencyLimit(pace v1alpha1.MigrationPace, maximum int, now time.Time) *concurrencyLimit {
	return &concurrencyLimit{gain: requiredGain(pace), maximum: float64(maximum), value: 1, cooldown: cooldown, measuring: true, resumeValue: 1, windowStart: now}
}

// allowed returns the limit: at least 1, at most the maximum.
func (l *concurrencyLimit) allowed() int { return int(l.value) }

// succeeded records a patch that succeeded, and how many were in flight.
func (l *concurrencyLimit) succeeded(latency time.Duration, inFlight int, now time.Time) {
	if l.ignored > 0 {
		l.ignored--
		return
	}
	l.samples++
	l.total += latency
	l.peak = max(l.peak, inFlight)
	if l.samples < max(minSamples, 2*l.allowed()) || now.Sub(l.windowStart) < minWindow {
		return
	}
	average := l.total.Seconds() / float64(l.samples)
	if l.measuring {
		l.measuring, l.baselineTime = false, now
		l.baseline = average
		l.set(l.resumeValue)
	} else {
		l.adapt(average)
	}
	l.openWindow(now)
	if now.Sub(l.baselineTime) >= baselineInterval {
		l.measureBaseline()
	}
}

// measureBaseline makes the next window measure the baseline.
func (l *concurrencyLimit) measureBaseline() {
	l.ignored = l.allowed()
	l.measuring, l.resumeValue = true, l.value
	l.set(1)
}

// failed records an API server that is overloaded, unreachable, or timing out.
func (l *concurrencyLimit) failed(now time.Time) {
	if l.hadErrors && now.Sub(l.windowStart) < minWindow {
		return
	}
	l.lower(l.value * shrink)
	l.resumeValue = l.value
	l.openWindow(now)
	l.hadErrors = true
}

// adapt changes the limit after a window, unless fewer patches were in flight than it allowed. A
// single slow window is ignored if the limit was acceptable before: a page may have been read, or
// garbage collected.
func (l *concurrencyLimit) adapt(average float64) {
	l.baseline = min(l.baseline, average)
	acceptable := tolerance * l.baseline * math.Pow(float64(l.allowed()), 1-l.gain)
	slow, wasProbing := average > acceptable && l.value >= 2, l.probing
	if slow && !l.slow && !wasProbing {
		l.slow = true
		return
	}
	l.slow, l.probing = false, false
	switch {
	case slow:
		l.lower(min(l.value-1, l.value*max(shrink, acceptable/average)))
	case l.peak < l.allowed():
	case l.cooldownLeft > 0:
		l.cooldownLeft--
	case l.shrunk:
		l.raise(l.value + max(1, l.value*growth))
	default:
		l.raise(2 * l.value)
	}
	switch {
	case wasProbing && slow:
		l.cooldown = min(2*l.cooldown, maxCooldown)
	case wasProbing:
		l.cooldown = cooldown
	}
}

func (l *concurrencyLimit) raise(value float64) {
	l.probing = l.value < l.maximum
	l.set(value)
}

func (l *concurrencyLimit) lower(value float64) {
	l.shrunk, l.cooldownLeft = true, l.cooldown
	l.set(value)
}

func (l *concurrencyLimit) set(value float64) { l.value = min(max(value, 1), l.maximum) }

func (l *concurrencyLimit) openWindow(now time.Time) {
	l.windowStart, l.ignored, l.samples, l.total, l.peak, l.hadErrors = now, 0, 0, 0, 0, false
}
