// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// earlyPercent is GOGC for processes that should save memory rather than time: manager and
// migrations mostly wait for API servers. With the default of 100, the heap grows to twice the
// memory in use.
const earlyPercent = 50

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
