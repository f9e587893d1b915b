// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"testing"
)

// isOdd is what the package says, without bits.
func isOdd(c byte) bool { return c < ' ' || c == '"' || c == '\\' || c >= 0x80 }

// isOddUnicode is isOdd where bytes that are not ASCII are plain.
func isOddUnicode(c byte) bool { return isOdd(c) && c < 0x80 }

// Every byte at every place, among bytes at the borders of what is plain.
func TestOdd(t *testing.T) {
	for _, other := range []byte{' ', '!', '#', '[', ']', '~', 0x7f} {
		for place := range Word {
			for c := range 256 {
				text := bytes.Repeat([]byte{other}, Word)
				text[place] = byte(c)
				first := bits.TrailingZeros64(Odd(binary.LittleEndian.Uint64(text))) / Word
				if want := firstOdd(text, isOdd); first != want {
					t.Fatalf("of %q, %d are plain, want %d", text, first, want)
				}
			}
		}
	}
}

// What stands behind a byte at an uneven place must not hide it.
func TestOddBytesBehindEachOther(t *testing.T) {
	for first := range 256 {
		for second := range 256 {
			text := []byte{'a', byte(first), byte(second), 'a', 'a', 'a', 'a', 'a'}
			got := bits.TrailingZeros64(Odd(binary.LittleEndian.Uint64(text))) / Word
			if want := firstOdd(text, isOdd); got != want {
				t.Fatalf("of %q, %d are plain, want %d", text, got, want)
			}
		}
	}
}

func TestLen(t *testing.T) {
	for length := range 41 {
		for place := range length + 1 {
			for _, c := range []byte{0, 0x1f, ' ', '"', 'a', '\\', 0x7f, 0x80, 0xa2, 0xdc, 0xff} {
				text := bytes.Repeat([]byte{'a'}, length)
				if place < length {
					text[place] = c
				}
				// A second odd byte, further back, does not count.
				if place+3 < length {
					text[place+3] = '"'
				}
				if got, want := Len(text), firstOdd(text, isOdd); got != want {
					t.Fatalf("Len(%q) = %d, want %d", text, got, want)
				}
				if got, want := LenUnicode(text), firstOdd(text, isOddUnicode); got != want {
					t.Fatalf("LenUnicode(%q) = %d, want %d", text, got, want)
				}
			}
		}
	}
}

func firstOdd(text []byte, odd func(byte) bool) int {
	for i, c := range text {
		if odd(c) {
			return i
		}
	}
	return len(text)
}
