// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"math"
	"strconv"
	"time"
)

// MaxCastSeconds is the longest duration that Go can write, in seconds: a rule casts no
// larger integer.
const MaxCastSeconds = math.MaxInt64 / int64(time.Second)

// convert reads a string, or writes an integer. What is neither has no image.
func (c *Cast) convert(h *hop, value *node, toHub bool) *node {
	if toHub == c.Hub {
		return c.write(h, value.text)
	}
	if !value.isText() {
		return nil
	}
	return c.read(h, h.decode(value.text))
}

func (c *Cast) write(h *hop, text []byte) *node {
	number, ok := readInteger(text)
	switch {
	case !ok || c.Seconds && (number > MaxCastSeconds || number < -MaxCastSeconds):
		return nil
	case c.Seconds:
		return h.quote([]byte((time.Duration(number) * time.Second).String()))
	}
	return h.quote(text)
}

func (c *Cast) read(h *hop, text []byte) *node {
	if c.Seconds {
		duration, err := time.ParseDuration(string(text))
		if err != nil || duration%time.Second != 0 {
			return nil
		}
		start := len(h.text)
		h.text = strconv.AppendInt(h.text, int64(duration/time.Second), 10)
		return h.raw(h.since(start))
	}
	if !isInteger(text) {
		return nil
	}
	return h.raw(text)
}

// isInteger reports whether text is an integer as it would be printed.
func isInteger(text []byte) bool {
	const sure = 18 // digits that no integer of 64 bits is too small for
	digits := bytes.TrimPrefix(text, []byte("-"))
	if len(digits) == 0 || len(digits) > sure || digits[0] == '0' {
		_, ok := readInteger(text)
		return ok
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// readInteger reads a decimal integer that is as it would be printed: 7, not 007.
func readInteger(text []byte) (int64, bool) {
	number, err := strconv.ParseInt(string(text), 10, 64)
	var digits [20]byte
	return number, err == nil && string(strconv.AppendInt(digits[:0], number, 10)) == string(text)
}
