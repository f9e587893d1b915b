// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestFreeAtRest: a process with little to do returns the memory of what it had to do.
func TestFreeAtRest(t *testing.T) {
	unused := func() uint64 {
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapIdle - stats.HeapReleased
	}
	const much = 64 << 20
	garbage := make([]byte, much)
	for i := range garbage {
		garbage[i] = 1
	}
	runtime.KeepAlive(garbage)
	runtime.GC()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- freeAtRest(ctx) }()
		time.Sleep(restEvery + time.Second) //nolint:forbidigo // the clock of synctest
		cancel()
		expect.NoError(t, <-ended)
	})
	if kept := unused(); kept >= much {
		t.Errorf("%d MiB of unused memory are kept", kept>>20)
	}
}
