// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"os"
	"runtime"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
)

const (
	// spareBytes is how much garbage a pod may have beside what it needs. By default, Go allows as much
	// as that, and a pod with a thousand rulesets would be half garbage. Conversions make little of it.
	spareBytes = 16 << 20
	// leastPercent is the least garbage, in percent of what is needed: each collection reads all of that.
	leastPercent = 25
)

// garbage limits the garbage of the process as the number of its rulesets changes, unless GOGC is set.
type garbage struct {
	percent int
	fixed   bool
}

func newGarbage() *garbage { return &garbage{percent: 100, fixed: os.Getenv("GOGC") != ""} }

// limit takes what the last collection left as what the process needs.
func (g *garbage) limit() {
	if percent := sparePercent(liveBytes()); percent != g.percent && !g.fixed {
		g.percent = percent
		debug.SetGCPercent(percent)
	}
}

// liveBytes is what the last collection left.
func liveBytes() uint64 {
	live := []runtimemetrics.Sample{{Name: "/gc/heap/live:bytes"}}
	runtimemetrics.Read(live)
	return live[0].Value.Uint64()
}

// fit gives to calls what the rulesets leave of the memory.
func (h *Handler) fit() {
	runtime.GC()
	h.limiters.resize(h.options.MemoryLimit - programBytes - max(int64(liveBytes())-h.limiters.used(), 0))
}

// sparePercent returns GOGC for a process by the number of bytes that it needs, in steps, because a change stops
// all goroutines for a moment.
func sparePercent(live uint64) int {
	const step = 5
	percent := 100 * spareBytes / max(live, 1)
	return int(min(max(percent/step*step, leastPercent), 100))
}
