// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"

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
}

// TestCallsThatWaitHoldNoBuffers: whatever reviews an exchange had before, it has no large buffers when
// a call gets it, and none while the call waits for memory. Otherwise, the memory of parallel calls has
// no bound.
func TestCallsThatWaitHoldNoBuffers(t *testing.T) {
	if kept(make([]byte, keptBytes+1)) != nil || kept(make([]byte, keptBytes)) == nil {
		t.Errorf("buffers of other sizes than %d bytes are kept", keptBytes)
	}
	synctest.Test(t, func(t *testing.T) {
		handler := NewHandler(only(convertFunc(rename)), HandlerOptions{Log: logr.Discard()})
		limiter, other := handler.limiters.first, share{}
		_, _ = limiter.acquire(t.Context(), &other, limiter.limit)
		ctx, leave := context.WithCancel(t.Context())
		x := begin(t, handler)
		x.in, x.out = make([]byte, 0, keptBytes), make([]byte, 0, keptBytes)
		go func() { _ = x.reserve(ctx, limiter, &x.kind.held.first, 1) }()
		synctest.Wait()
		expect.Equal(t, "bytes of a call that waits", 0, cap(x.in)+cap(x.out))
		leave()
		synctest.Wait()
		x.release()
	})
}
