// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"runtime"
	"slices"
	"time"
)

// A subject gets up to rounds turns. One that is so slow that its time is over
// before gets no more than fewRounds.
const rounds, fewRounds = 20, 5

// tick is how long calls go on before any client checks whether they should: looking
// takes time too.
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
	// Best and Median are CPU times of one call, over the rounds.
	Best, Median time.Duration
	// Allocs and Bytes are what one call allocates on the heap.
	Allocs, Bytes float64
}

// run is a subject while it is measured.
type run struct {
	Subject
	// batch is how many calls are made between looks at the clock.
	batch int
	// times of one call, one of each round.
	times []time.Duration
	spent time.Duration
}

// Run measures the subjects, each for the time in all.
func Run(subjects []Subject, each time.Duration) []Sample {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	runs := make([]run, len(subjects))
	for i, subject := range subjects {
		subject.Call() // Fills pools and caches.
		start := time.Now()
		subject.Call()
		runs[i] = run{Subject: subject, batch: max(1, int(tick/max(time.Since(start), 1)))}
	}
	for range rounds {
		for i := range runs {
			runs[i].turn(each)
		}
	}
	samples := make([]Sample, len(runs))
	for i := range runs {
		samples[i] = runs[i].sample()
	}
	return samples
}

// turn makes calls for a part of the time, and notes what one of them took.
func (r *run) turn(each time.Duration) {
	if len(r.times) >= fewRounds && r.spent >= each {
		return
	}
	// No one pays for what another client has left behind. What was pooled is gone
	// then, and comes back with the first call.
	runtime.GC()
	r.Call()
	start, before, calls := time.Now(), clock(), 0
	for calls == 0 || time.Since(start) < each/rounds {
		for range r.batch {
			r.Call()
		}
		calls += r.batch
	}
	r.times = append(r.times, (clock()-before)/time.Duration(calls))
	r.spent += time.Since(start)
}

func (r *run) sample() Sample {
	slices.Sort(r.times)
	s := Sample{Subject: r.Name, Best: r.times[0], Median: r.times[len(r.times)/2]}
	s.Allocs, s.Bytes = allocations(r.Call, s.Best)
	return s
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
