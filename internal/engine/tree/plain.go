// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"encoding/binary"
	"math/bits"
)

// wordSize is the number of bytes that special checks.
const wordSize = 8

// special finds text that is the same inside and outside of a JSON string: printable ASCII without quotes and
// backslashes. Most text is. It sets the highest bit of each of the eight bytes that is a quote, a backslash, a control
// character or not ASCII: "Bit Twiddling Hacks", determine if a word has a byte less than n. XOR
// with flip turns a quote into a space, and keeps control characters below a space. A bit after
// the first one that is set may be wrong.
func special(word uint64) uint64 {
	const flip = '"' ^ ' '
	return (word | (word ^ low*flip - low*(' '+1)) | (word ^ low*'\\' - low)) & high
}

// plainLength returns the length of the plain text at the beginning of text, with bytes that are not ASCII.
func plainLength(text []byte) int {
	i := 0
	for ; i+wordSize <= len(text); i += wordSize {
		word := binary.LittleEndian.Uint64(text[i:])
		if marks := special(word) &^ word; marks != 0 {
			return i + bits.TrailingZeros64(marks)/wordSize
		}
	}
	for ; i < len(text); i++ {
		if word := uint64(text[i]) | spaces; special(word)&^word != 0 {
			return i
		}
	}
	return i
}

// low and high are the lowest and the highest bits of all bytes.
const low, high = 0x0101010101010101, 0x8080808080808080

// spaces fills the rest of a word after its first byte.
const spaces = 0x2020202020202000
