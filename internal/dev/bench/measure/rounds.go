// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// A subject gets up to rounds turns, or only fewRounds if it is so slow that its time is over.
const rounds, fewRounds = 20, 5

// tick is the time between two looks at the clock, which take time too.
const tick = 100 * time.Microsecond

// Subject is something that is measured.
type Subject struct {
	Name string
	// Call does the work once.
	Call func()
	// batch is the number of calls between two looks at the clock.
	batch int
	// times of one call, one per round, which took spent.
	times []time.Duration
	spent time.Duration
}

// Run calls each subject for a total time of each, and returns the CPU time of one call in its shortest
// round, by name.
func Run(subjects []Subject, each time.Duration) map[string]time.Duration {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for i := range subjects {
		subjects[i].Call() // Fills pools and caches.
		start := time.Now()
		subjects[i].Call()
		subjects[i].batch = max(1, int(tick/max(time.Since(start), 1)))
	}
	for range rounds {
		for i := range subjects {
			subjects[i].turn(each)
		}
	}
	best := map[string]time.Duration{}
	for _, subject := range subjects {
		best[subject.Name] = slices.Min(subject.times)
	}
	return best
}

// turn calls the subject for a part of the time, and records the time of one call.
func (s *Subject) turn(each time.Duration) {
	if len(s.times) >= fewRounds && s.spent >= each {
		return
	}
	// Collect the garbage of other subjects. This also empties pools, which the first call refills.
	runtime.GC()
	s.Call()
	start, before, calls := time.Now(), clock(), 0
	for calls == 0 || time.Since(start) < each/rounds {
		for range s.batch {
			s.Call()
		}
		calls += s.batch
	}
	s.times = append(s.times, (clock()-before)/time.Duration(calls))
	s.spent += time.Since(start)
}

// clock returns the CPU time that this process has used.
func clock() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // the arguments are valid
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// Wait waits, unless ctx ends before.
func Wait(ctx context.Context, span time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(span):
		return nil
	}
}
