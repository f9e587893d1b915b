// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// containerMemory is the file with the memory limit of a container.
const containerMemory = "/sys/fs/cgroup/memory.max"

// LimitMemory keeps the process below the memory limit of its container, unless
// GOMEMLIMIT is set. It returns the lower of the two, 0 if there is none.
func LimitMemory() int64 {
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
