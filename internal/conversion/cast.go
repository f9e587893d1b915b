// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"math"
	"strconv"
	"time"
)

// maxSeconds is the longest duration that Go can write.
const maxSeconds = math.MaxInt64 / int64(time.Second)

// convert reads a string, or writes an integer. What is neither has no image.
func (c *Cast) convert(value *node, toHub bool) *node {
	if toHub == c.Hub {
		return c.write(value)
	}
	if !isString(value.raw) {
		return nil
	}
	return c.read(decodeString(value.raw))
}

func (c *Cast) write(value *node) *node {
	number, ok := readInteger(string(value.raw))
	switch {
	case !ok || c.Seconds && (number > maxSeconds || number < -maxSeconds):
		return nil
	case c.Seconds:
		return rawNode(appendString(nil, (time.Duration(number) * time.Second).String()))
	}
	return rawNode(appendString(nil, string(value.raw)))
}

func (c *Cast) read(text string) *node {
	if c.Seconds {
		duration, err := time.ParseDuration(text)
		if err != nil || duration%time.Second != 0 {
			return nil
		}
		return rawNode(strconv.AppendInt(nil, int64(duration/time.Second), 10))
	}
	if _, ok := readInteger(text); !ok {
		return nil
	}
	return rawNode([]byte(text))
}

// readInteger reads a decimal integer that is as it would be printed: 7, not 007.
func readInteger(text string) (int64, bool) {
	number, err := strconv.ParseInt(text, 10, 64)
	return number, err == nil && strconv.FormatInt(number, 10) == text
}
