// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestBufferSizes: a buffer has room for what is asked for, keeps its content, and those of one class
// differ by less than half.
func TestBufferSizes(t *testing.T) {
	smallest := map[int]int{}
	for size := 64; size <= pooledBytes; size += size/100 + 1 {
		class := sizeClass(size)
		if smallest[class] == 0 {
			smallest[class] = size
		}
		if 2*size >= 3*smallest[class]+2 {
			t.Fatalf("%d and %d bytes are of one class", smallest[class], size)
		}
	}
	for _, size := range []int{1, 2, 100, keptBytes, pooledBytes, pooledBytes + 1} {
		returnBuffer(make([]byte, size))
		buffer := takeBuffer(size)
		if len(buffer) != 0 || cap(buffer) < size {
			t.Errorf("a buffer for %d bytes has %d of %d", size, len(buffer), cap(buffer))
		}
		larger := withRoom(append(buffer, 'x'), 2*size+1)
		expect.Equal(t, "content", "x", string(larger))
		expect.Equal(t, "has room", true, cap(larger) > 2*size)
	}
	expect.Equal(t, "a larger buffer than a call may keep is in the class of one that it keeps", false, sizeClass(keptBytes) == sizeClass(keptBytes+1))
}

// TestExchangesHoldNoLargeBuffers: whatever reviews an exchange had before, it has no large buffers when a call gets
// it. Otherwise, the memory of parallel calls has no bound.
func TestExchangesHoldNoLargeBuffers(t *testing.T) {
	if kept(make([]byte, keptBytes+1)) != nil || kept(make([]byte, keptBytes)) == nil {
		t.Errorf("buffers of other sizes than %d bytes are kept", keptBytes)
	}
}
