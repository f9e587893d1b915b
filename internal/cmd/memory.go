// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// containerMemory is where a container reads how much memory it may use.
const containerMemory = "/sys/fs/cgroup/memory.max"

// earlyPercent is by how much the heap may grow before garbage is collected,
// where memory counts and time does not: manager and migrations mostly wait for
// API servers. Go's default of 100 keeps as much free for garbage as is in use.
const earlyPercent = 50

// limitMemory keeps the process under what its container may use, if nobody
// set GOMEMLIMIT.
func limitMemory() {
	if limit := memoryLimit(containerMemory); limit > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
	}
}

// collectEarly has garbage collected before there is much of it, if nobody set
// GOGC.
func collectEarly() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(earlyPercent)
	}
}

// memoryLimit is from where on the garbage collector works harder, in bytes:
// nine tenths of what the container may use, or 0 if that has no limit. Without
// it, the collector lets the heap grow to twice of what is in use, and Linux ends
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
	return limit / 10 * 9
}
