// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"math"
	"time"
)

const (
	// calm is the number of patches in flight at which the latency of an API server
	// that is not kept busy is measured: at first, and again and again, because it
	// changes for other reasons, too.
	calm         = 4
	calmInterval = 30 * time.Second
	// minSamples and minWindow bound how soon the limit moves again: it follows
	// averages, and not single patches.
	minSamples = 16
	minWindow  = 250 * time.Millisecond
	// tolerance is how many times the calm latency patches may take before the limit
	// falls. Some queueing is what keeps an API server busy: etcd commits the
	// writes that wait for it together.
	tolerance = 3.0
	// shrink is what trouble leaves of the limit.
	shrink = 0.5
)

// limit is the number of patches that may be in flight. It grows while their
// latency holds and shrinks with it, by the ratio of the calm latency to that of
// the last window: the gradient of Netflix's concurrency-limits, with the
// measurement that Envoy's adaptive concurrency adds. It halves on trouble, once
// in a window.
type limit struct {
	maximum float64
	value   float64

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

func newLimit(maximum int, now time.Time) *limit {
	first := min(calm, float64(maximum))
	return &limit{maximum: float64(maximum), value: first, measuring: true, resumed: first, began: now}
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
	l.set(min(l.value, calm))
}

// failed takes note of an API server in trouble: overloaded, away, or timing out.
func (l *limit) failed(now time.Time) {
	if l.troubled && now.Sub(l.began) < minWindow {
		return
	}
	l.set(l.value * shrink)
	l.resumed = l.value
	l.open(now)
	l.troubled = true
}

// adapt leaves a limit alone that is not what holds patches back.
func (l *limit) adapt(average float64) {
	l.baseline = min(l.baseline, average)
	gradient, bearable := 1.0, tolerance*l.baseline
	if average > bearable {
		gradient = max(shrink, bearable/average)
	}
	growth := math.Sqrt(l.value)
	if l.peak < l.allowed() {
		growth = 0
	}
	l.set(l.value*gradient + growth)
}

func (l *limit) set(value float64) { l.value = min(max(value, 1), l.maximum) }

func (l *limit) open(now time.Time) {
	l.began, l.stale, l.samples, l.total, l.peak, l.troubled = now, 0, 0, 0, 0, false
}
