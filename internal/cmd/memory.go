// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// containerMemory is the file with the memory limit of a container.
const containerMemory = "/sys/fs/cgroup/memory.max"

// earlyPercent is GOGC for processes that should save memory rather than time: manager and
// migrations mostly wait for API servers. With the default of 100, the heap grows to twice the
// memory in use.
const earlyPercent = 50

// limitMemory keeps the process below the memory limit of its container, unless
// GOMEMLIMIT is set.
func limitMemory() {
	if limit := memoryLimit(containerMemory); limit > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
	}
}

// collectEarly collects garbage before it accumulates, unless GOGC is set.
func collectEarly() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(earlyPercent)
	}
}

// memoryLimit is the heap size from which the garbage collector works harder, in
// bytes: nine tenths of the container's limit, or 0 if there is no limit. Without
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
	return limit / 10 * 9
}
