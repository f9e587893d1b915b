// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestSparePercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 100, 4 << 20: 100, 16 << 20: 100, 17 << 20: 90, 32 << 20: 50, 45 << 20: 35, 1 << 30: 25} {
		expect.Equal(t, "percent", want, sparePercent(live))
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
		expect.Equal(t, "GOGC="+text+": the limit is fixed", fixed, debug.SetGCPercent(100) == 100)
	}
	runtime.KeepAlive(needed)
}
