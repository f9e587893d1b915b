// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	// latencyBounds start below the time for a small object, and end with the 30 s after which API
	// servers give up. The latency budget is 50 ms, plus 8 ms for each object.
	latencyBounds = durations(10*time.Microsecond, 25*time.Microsecond, 50*time.Microsecond, 100*time.Microsecond, 250*time.Microsecond, 500*time.Microsecond,
		time.Millisecond, 2500*time.Microsecond, 5*time.Millisecond, 10*time.Millisecond, 25*time.Millisecond, 50*time.Millisecond, 100*time.Millisecond,
		500*time.Millisecond, time.Second, 5*time.Second, 30*time.Second)
	// sizeBounds end with the limit for all annotations of an object.
	sizeBounds = &bounds{[]int64{64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 128 << 10, 256 << 10}, 1}
)

// bounds are the upper bounds of the buckets of a histogram, in the unit in which it observes
// values. A Prometheus unit has perUnit of them.
type bounds struct {
	upper   []int64
	perUnit float64
}

// durations are bounds in nanoseconds; Prometheus counts seconds.
func durations(upper ...time.Duration) *bounds {
	b := &bounds{perUnit: float64(time.Second)}
	for _, each := range upper {
		b.upper = append(b.upper, int64(each))
	}
	return b
}

// histogram is a histogram of numbers only, which are read when they are scraped: one of the library
// takes 1,300 bytes, and a pod may serve a thousand kinds with ten of them.
type histogram struct {
	*bounds
	// counts are those of each bucket alone, the last one for larger values.
	counts []atomic.Int64
	sum    atomic.Int64
}

func newHistogram(b *bounds) *histogram {
	return &histogram{bounds: b, counts: make([]atomic.Int64, len(b.upper)+1)}
}

func (h *histogram) observe(value int64) {
	bucket := 0
	for bucket < len(h.upper) && value > h.upper[bucket] {
		bucket++
	}
	h.counts[bucket].Add(1)
	h.sum.Add(value)
}

// empty reports that it has observed no value. Most histograms of a pod with many kinds are.
func (h *histogram) empty() bool {
	for i := range h.counts {
		if h.counts[i].Load() > 0 {
			return false
		}
	}
	return true
}

// collect sends the histogram, if it has observed a value.
func (h *histogram) collect(metrics chan<- prometheus.Metric, as *prometheus.Desc, labels ...string) {
	if h.empty() {
		return
	}
	var total uint64
	cumulative := make(map[float64]uint64, len(h.upper))
	for i, upper := range h.upper {
		total += uint64(h.counts[i].Load())
		cumulative[float64(upper)/h.perUnit] = total
	}
	total += uint64(h.counts[len(h.upper)].Load())
	metrics <- prometheus.MustNewConstHistogram(as, total, float64(h.sum.Load())/h.perUnit, cumulative, labels...)
}
