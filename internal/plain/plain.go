// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plain tells text that is written the same way inside a JSON string as
// outside of it: printable ASCII without quotes and backslashes. Most text is,
// and eight bytes of it are looked at at a time.
package plain

import (
	"encoding/binary"
	"math/bits"
)

// Word is the number of bytes that Odd looks at.
const Word = 8

// Odd marks, by its highest bit, each of eight bytes that is a quote, a backslash,
// a control character or not ASCII: "Bit Twiddling Hacks", determine if a word has
// a byte less than n. To flip one bit makes a quote a space, and leaves control
// characters below it. Bytes that are not ASCII are not round-trippable whatever becomes of them.
// A mark may be false only behind a true one, and the first is what counts.
func Odd(word uint64) uint64 {
	const flip = '"' ^ ' '
	return (word | (word ^ low*flip - low*(' '+1)) | (word ^ low*'\\' - low)) & high
}

// Len is the number of plain bytes that text begins with.
func Len(text []byte) int { return length(text, 0) }

// LenUnicode is Len where bytes that are not ASCII are plain, too.
func LenUnicode(text []byte) int { return length(text, high) }

// length takes bytes for plain whose highest bit is in also.
func length(text []byte, also uint64) int {
	at := 0
	for ; at+Word <= len(text); at += Word {
		word := binary.LittleEndian.Uint64(text[at:])
		if marks := Odd(word) &^ (word & also); marks != 0 {
			return at + bits.TrailingZeros64(marks)/Word
		}
	}
	for ; at < len(text); at++ {
		word := uint64(text[at]) | spaces
		if Odd(word)&^(word&also) != 0 {
			return at
		}
	}
	return at
}

// low and high are the lowest and the highest bits of all bytes.
const low, high = 0x0101010101010101, 0x8080808080808080

// spaces are plain bytes for all but the first of a word.
const spaces = 0x2020202020202000
