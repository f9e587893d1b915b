// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestSparePercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 100, 4 << 20: 100, 16 << 20: 100, 17 << 20: 90, 32 << 20: 50, 45 << 20: 35, 1 << 30: 25} {
		if got := sparePercent(live); got != want {
			t.Errorf("%d bytes: %d percent, want %d", live, got, want)
		}
	}
}

// TestGarbage: a process that needs much may have less garbage, unless GOGC is set.
func TestGarbage(t *testing.T) {
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	needed := make([]byte, 2*spareBytes)
	runtime.GC()
	for text, fixed := range map[string]bool{"": false, "200": true} {
		t.Setenv("GOGC", text)
		newGarbage().limit()
		if is := debug.SetGCPercent(100); (is == 100) != fixed {
			t.Errorf("GOGC=%s: the limit is %d percent", text, is)
		}
	}
	runtime.KeepAlive(needed)
}
