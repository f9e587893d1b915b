// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"math"
	"time"
)

const (
	// firstLimit is where the search for the right number begins.
	firstLimit = 4
	// minSamples and minWindow bound how soon the limit moves again: it follows
	// averages, and not single patches.
	minSamples = 16
	minWindow  = 250 * time.Millisecond
	// tolerance is how many times their latency without queueing patches may
	// take, before the limit falls. Some queueing is what keeps an API server
	// busy: etcd commits the writes that wait for it together.
	tolerance = 6.0
	// shrink is what trouble leaves of the limit.
	shrink = 0.5
	// drift lets the latency without queueing grow by this much per window, so
	// that it follows an API server that became slower for other reasons.
	drift = 1.01
)

// limit is the number of patches that may be in flight. It grows while their
// latency holds and shrinks with it, by the ratio of the latency without
// queueing to that of the last window: the gradient of Netflix's
// concurrency-limits and, before it, of TCP Vegas. It halves on trouble, once in
// a window.
type limit struct {
	maximum float64
	value   float64

	// baseline is the least average latency of a window, in seconds; 0 is unknown.
	baseline float64
	began    time.Time
	samples  int
	total    time.Duration
	// peak is the most that was in flight in the window.
	peak     int
	troubled bool
}

func newLimit(maximum int, now time.Time) *limit {
	return &limit{maximum: float64(maximum), value: min(firstLimit, float64(maximum)), began: now}
}

// allowed is at least 1 and never more than the maximum.
func (l *limit) allowed() int { return int(l.value) }

// succeeded takes note of a patch that was answered as it should be, while so
// many were in flight.
func (l *limit) succeeded(latency time.Duration, inFlight int, now time.Time) {
	l.samples++
	l.total += latency
	l.peak = max(l.peak, inFlight)
	if l.samples < max(minSamples, 2*l.allowed()) || now.Sub(l.began) < minWindow {
		return
	}
	l.adapt(l.total.Seconds() / float64(l.samples))
	l.open(now)
}

// failed takes note of an API server in trouble: overloaded, away, or timing out.
func (l *limit) failed(now time.Time) {
	if l.troubled && now.Sub(l.began) < minWindow {
		return
	}
	l.set(l.value * shrink)
	l.open(now)
	l.troubled = true
}

// adapt leaves a limit alone that is not what holds patches back.
func (l *limit) adapt(average float64) {
	if l.baseline == 0 || average < l.baseline {
		l.baseline = average
	}
	gradient, bearable := 1.0, tolerance*l.baseline
	if average > bearable {
		gradient = max(shrink, bearable/average)
	}
	growth := math.Sqrt(l.value)
	if l.peak < l.allowed() {
		growth = 0
	}
	l.set(l.value*gradient + growth)
	l.baseline *= drift
}

func (l *limit) set(value float64) { l.value = min(max(value, 1), l.maximum) }

func (l *limit) open(now time.Time) {
	l.began, l.samples, l.total, l.peak, l.troubled = now, 0, 0, 0, false
}
