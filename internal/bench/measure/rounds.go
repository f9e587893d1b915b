// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"runtime"
	"slices"
	"time"
)

// rounds is how many turns every subject gets.
const rounds = 6

// tick is how long calls go on before the clock is looked at: looking takes
// time too.
const tick = 100 * time.Microsecond

// Subject is something that is measured.
type Subject struct {
	Name string
	// Call does the work once.
	Call func()
}

// Sample is what was measured of a subject.
type Sample struct {
	Subject string
	// Best and Median are times of one call, over the rounds.
	Best, Median time.Duration
	// Allocs and Bytes are what one call allocates on the heap.
	Allocs, Bytes float64
}

// Run measures the subjects, each for the time in all, and at least once a round.
func Run(subjects []Subject, each time.Duration) []Sample {
	samples := make([]Sample, len(subjects))
	times := make([][]time.Duration, len(subjects))
	batches := make([]int, len(subjects))
	for i, subject := range subjects {
		subject.Call() // Fills pools and caches.
		start := time.Now()
		subject.Call()
		batches[i] = max(1, int(tick/max(time.Since(start), 1)))
	}
	for range rounds {
		for i, subject := range subjects {
			// Nobody pays for what somebody else has left behind.
			runtime.GC()
			times[i] = append(times[i], slice(subject.Call, each/rounds, batches[i]))
		}
	}
	for i, subject := range subjects {
		slices.Sort(times[i])
		samples[i] = Sample{Subject: subject.Name, Best: times[i][0], Median: times[i][len(times[i])/2]}
		samples[i].Allocs, samples[i].Bytes = allocations(subject.Call, times[i][0])
	}
	return samples
}

// slice makes calls for a time, in batches, and returns what one of them took.
func slice(call func(), span time.Duration, batch int) time.Duration {
	call() // The collection before has emptied the pools.
	start := time.Now()
	for calls := batch; ; calls += batch {
		for range batch {
			call()
		}
		if passed := time.Since(start); passed >= span {
			return passed / time.Duration(calls)
		}
	}
}

// allocations returns how many objects and bytes a call allocates.
func allocations(call func(), took time.Duration) (count, bytes float64) {
	calls := uint64(max(3, min(1000, int(100*time.Millisecond/max(took, 1)))))
	call()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range calls {
		call()
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(calls), float64(after.TotalAlloc-before.TotalAlloc) / float64(calls)
}
