// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// TestMemoryIsCounted: a conversion counts about the memory that it allocates, for each kind of rule. What it allocates
// includes garbage, such as smaller copies of what has grown.
func TestMemoryIsCounted(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for name, g := range growths {
		c := converterOf(t, between(t, g.v1, g.v2, g.rules))
		for _, to := range []string{"v2", "v1"} {
			object := g.at(t, c, 2000, to)
			var before, after runtime.MemStats
			var counted int64
			runtime.GC()
			runtime.GC() // what was pooled is gone
			runtime.ReadMemStats(&before)
			_, _, err := c.Answer(nil, object, to, func(memory int64) bool { counted = max(counted, memory); return false })
			runtime.ReadMemStats(&after)
			allocated := int64(after.TotalAlloc-before.TotalAlloc) - 3*int64(len(object))
			t.Logf("%s to %s: %d bytes counted, %d allocated for %d: %v", name, to, counted, allocated, len(object), err)
			if allocated > 8*(counted+512<<10) {
				t.Errorf("%s to %s: %d bytes counted, %d allocated", name, to, counted, allocated)
			}
		}
	}
}
