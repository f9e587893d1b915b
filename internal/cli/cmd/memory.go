// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"
)

// containerMemory is the file with the memory limit of a container.
const containerMemory = "/sys/fs/cgroup/memory.max"

// earlyPercent is GOGC for processes that should save memory rather than time: manager and
// migrations mostly wait for API servers. With the default of 100, the heap grows to twice the
// memory in use.
const earlyPercent = 50

// limitMemory keeps the process below the memory limit of its container, unless
// GOMEMLIMIT is set. It returns the lower of the two, 0 if there is none.
func limitMemory() int64 {
	limit := memoryLimit(containerMemory)
	if limit > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
	}
	set := debug.SetMemoryLimit(-1)
	switch {
	case set == math.MaxInt64:
		return limit
	case limit == 0:
		return set
	}
	return min(limit, set)
}

// collectEarly collects garbage before it accumulates, unless GOGC is set.
func collectEarly() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(earlyPercent)
	}
}

const (
	// restEvery is how often freeAtRest looks at the process.
	restEvery = time.Minute
	// restCollections is how many garbage collections a process at rest has in that time.
	restCollections = 2
)

// freeAtRest returns memory to the system while the process has little to do, until the context ends. Go keeps
// half of what is in use for garbage, also if there is nearly none: after hundreds of policies were activated,
// that is a third of the manager's own memory.
func freeAtRest(ctx context.Context) error {
	ticker := time.NewTicker(restEvery)
	defer ticker.Stop()
	before := collections()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			now := collections()
			if now-before <= restCollections {
				debug.FreeOSMemory()
			}
			before = now
		}
	}
}

// collections returns how often the runtime has collected garbage by itself.
func collections() uint64 {
	sample := []metrics.Sample{{Name: "/gc/cycles/automatic:gc-cycles"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// memoryLimit is the heap size from which the garbage collector works harder, in
// bytes: four fifths of the container's limit, or 0 if there is no limit. The rest is
// for the pages of the program, and for what the collector is late with. Without
// it, the collector lets the heap grow to twice the memory in use, and Linux kills
// the process in the middle of its calls.
func memoryLimit(file string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0 // "max"
	}
	return limit / 5 * 4
}
