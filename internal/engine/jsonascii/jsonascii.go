// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jsonascii finds text that is the same inside and outside of a JSON string: printable ASCII
// without quotes and backslashes. Most text is. It checks eight bytes at once.
package jsonascii

import (
	"encoding/binary"
	"math/bits"
)

// WordSize is the number of bytes that Special checks.
const WordSize = 8

// Special sets the highest bit of each of the eight bytes that is a quote, a backslash, a control
// character or not ASCII: "Bit Twiddling Hacks", determine if a word has a byte less than n. XOR
// with flip turns a quote into a space, and keeps control characters below a space. A bit after
// the first one that is set may be wrong.
func Special(word uint64) uint64 {
	const flip = '"' ^ ' '
	return (word | (word ^ low*flip - low*(' '+1)) | (word ^ low*'\\' - low)) & high
}

// Len returns the length of the plain text at the beginning of text.
func Len(text []byte) int { return length(text, 0) }

// LenUnicode is Len with bytes that are not ASCII as plain text.
func LenUnicode(text []byte) int { return length(text, high) }

// length ignores bits of Special that are also set in the word and in also.
func length(text []byte, also uint64) int {
	i := 0
	for ; i+WordSize <= len(text); i += WordSize {
		word := binary.LittleEndian.Uint64(text[i:])
		if marks := Special(word) &^ (word & also); marks != 0 {
			return i + bits.TrailingZeros64(marks)/WordSize
		}
	}
	for ; i < len(text); i++ {
		word := uint64(text[i]) | spaces
		if Special(word)&^(word&also) != 0 {
			return i
		}
	}
	return i
}

// low and high are the lowest and the highest bits of all bytes.
const low, high = 0x0101010101010101, 0x8080808080808080

// spaces fills the rest of a word after its first byte.
const spaces = 0x2020202020202000
