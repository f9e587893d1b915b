// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"math/bits"
	"sync"
)

const (
	// keptBytes is the size of the largest buffer that stays in an exchange. It belongs to the connection:
	// calls hold no more without a reservation, however large the reviews were that their exchanges had before.
	keptBytes = firstBytes
	// pooledBytes is the size of the largest buffer that is pooled: enough for a list of 500 objects
	// of 10 KB.
	pooledBytes = 8 << 20
)

// buffers are the buffers that are not in use, in classes by size: two for each power of two, so
// that a buffer has less than half more than is needed. One of keptBytes is the largest of its class.
var buffers [2 * 24]sync.Pool

// sizeClass returns the class of a buffer of that many bytes, at most pooledBytes.
func sizeClass(size int) int {
	exponent := max(bits.Len(uint(size-1))-1, 1)
	return 2*exponent + (size-1)>>(exponent-1)&1
}

// takeBuffer returns an empty buffer with room for that many bytes.
func takeBuffer(size int) []byte {
	if size <= pooledBytes {
		if pooled, _ := buffers[sizeClass(size)].Get().(*[]byte); pooled != nil && cap(*pooled) >= size {
			return *pooled
		}
	}
	return make([]byte, 0, size)
}

// returnBuffer pools a buffer that is no longer used.
func returnBuffer(buffer []byte) {
	if size := cap(buffer); size > 0 && size <= pooledBytes {
		buffer = buffer[:0]
		buffers[sizeClass(size)].Put(&buffer)
	}
}

// withRoom returns a buffer with the content of buffer and room for that many bytes in total.
func withRoom(buffer []byte, size int) []byte {
	if cap(buffer) >= size {
		return buffer
	}
	larger := append(takeBuffer(size), buffer...)
	returnBuffer(buffer)
	return larger
}

// kept returns a buffer for the next call, or pools it.
func kept(buffer []byte) []byte {
	if cap(buffer) > keptBytes {
		returnBuffer(buffer)
		return nil
	}
	return buffer[:0]
}
