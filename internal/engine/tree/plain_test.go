// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"testing"
)

// isSpecial is special for one byte, without bit operations.
func isSpecial(c byte) bool { return c < ' ' || c == '"' || c == '\\' || c >= 0x80 }

// isSpecialUnicode is isSpecial without the bytes that are not ASCII.
func isSpecialUnicode(c byte) bool { return isSpecial(c) && c < 0x80 }

// Every byte at every place, among bytes at the limits of plain text.
func TestSpecial(t *testing.T) {
	for _, other := range []byte{' ', '!', '#', '[', ']', '~', 0x7f} {
		for place := range wordSize {
			for c := range 256 {
				text := bytes.Repeat([]byte{other}, wordSize)
				text[place] = byte(c)
				first := bits.TrailingZeros64(special(binary.LittleEndian.Uint64(text))) / wordSize
				if want := firstSpecial(text, isSpecial); first != want {
					t.Fatalf("of %q, %d need no escape, want %d", text, first, want)
				}
			}
		}
	}
}

// The byte after a special byte must not hide it.
func TestAdjacentSpecialBytes(t *testing.T) {
	for first := range 256 {
		for second := range 256 {
			text := []byte{'a', byte(first), byte(second), 'a', 'a', 'a', 'a', 'a'}
			got := bits.TrailingZeros64(special(binary.LittleEndian.Uint64(text))) / wordSize
			if want := firstSpecial(text, isSpecial); got != want {
				t.Fatalf("of %q, %d need no escape, want %d", text, got, want)
			}
		}
	}
}

func TestPlainLength(t *testing.T) {
	for length := range 41 {
		for place := range length + 1 {
			for _, c := range []byte{0, 0x1f, ' ', '"', 'a', '\\', 0x7f, 0x80, 0xa2, 0xdc, 0xff} {
				text := bytes.Repeat([]byte{'a'}, length)
				if place < length {
					text[place] = c
				}
				// A second special byte after it does not count.
				if place+3 < length {
					text[place+3] = '"'
				}
				if got, want := plainLength(text), firstSpecial(text, isSpecialUnicode); got != want {
					t.Fatalf("plainLength(%q) = %d, want %d", text, got, want)
				}
			}
		}
	}
}

func firstSpecial(text []byte, special func(byte) bool) int {
	for i, c := range text {
		if special(c) {
			return i
		}
	}
	return len(text)
}
