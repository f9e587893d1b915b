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

// cachePercent is by how much the heap of a process that mostly keeps caches may
// grow before garbage is collected. They hardly change, so the pages that Go's
// default of 100 would hold for garbage stay empty; to collect twice as often
// costs a process that mostly waits nothing that can be measured.
const cachePercent = 50

// limitMemory keeps the process under what its container may use, if nobody
// set GOMEMLIMIT.
func limitMemory() {
	if limit := memoryLimit(containerMemory); limit > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
	}
}

// collectForCaches has garbage collected as suits caches, if nobody set GOGC.
func collectForCaches() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(cachePercent)
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
