// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"math"
	"strconv"
	"time"
)

// translate translates a string by the first matching pair of the table. A value that is not in
// the table stays unchanged.
func translate(s *step, table []quotedPair, value *node, toHub bool) *node {
	if len(table) == 0 || !value.isText() {
		return value
	}
	from, to := 1, 0
	if toHub {
		from, to = 0, 1
	}
	text := value.text
	if !isPlain(text) {
		text = s.quote(s.decode(text)).text
	}
	for i := range table {
		if bytes.Equal(table[i][from], text) {
			return s.raw(table[i][to])
		}
	}
	return value
}

// quotedPair is a pair of a table as JSON strings.
type quotedPair [2][]byte

func quotedPairs(table [][2]string) []quotedPair {
	pairs := make([]quotedPair, len(table))
	for i, pair := range table {
		pairs[i] = quotedPair{appendQuoted(nil, pair[0]), appendQuoted(nil, pair[1])}
	}
	return pairs
}

// openElements opens a list.
var openElements = &projection{each: &projection{}}

// convert puts a value into a list, or returns the first element of a list. It returns nil if a
// list is expected and the value is none.
func (w *Wrap) convert(s *step, value *node, toHub bool) *node {
	if toHub == w.Hub {
		list := s.node()
		list.kind, list.open = array, true
		list.add(value)
		return list
	}
	list, err := s.parse(s.bytes(value), openElements)
	if err != nil || list.kind != array {
		return nil
	}
	return list.first
}

// MaxCastSeconds is the longest duration of package time, in seconds: a rule casts no larger
// integer.
const MaxCastSeconds = math.MaxInt64 / int64(time.Second)

// convert parses a string, or formats an integer. It returns nil for any other value.
func (c *Cast) convert(s *step, value *node, toHub bool) *node {
	if toHub == c.Hub {
		return c.write(s, value.text)
	}
	if !value.isText() {
		return nil
	}
	return c.read(s, s.decode(value.text))
}

func (c *Cast) write(s *step, text []byte) *node {
	number, ok := readInteger(text)
	switch {
	case !ok || c.Seconds && (number > MaxCastSeconds || number < -MaxCastSeconds):
		return nil
	case c.Seconds:
		return s.quote([]byte((time.Duration(number) * time.Second).String()))
	}
	return s.quote(text)
}

func (c *Cast) read(s *step, text []byte) *node {
	if c.Seconds {
		duration, err := time.ParseDuration(string(text))
		if err != nil || duration%time.Second != 0 {
			return nil
		}
		start := len(s.text)
		s.text = strconv.AppendInt(s.text, int64(duration/time.Second), 10)
		return s.raw(s.textFrom(start))
	}
	if !isInteger(text) {
		return nil
	}
	return s.raw(text)
}

// isInteger reports whether text is a 64-bit integer in its shortest form: 7, not 007.
func isInteger(text []byte) bool {
	const sure = 18 // any integer with this number of digits has 64 bits
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

// readInteger parses a decimal integer in its shortest form: 7, not 007.
func readInteger(text []byte) (int64, bool) {
	number, err := strconv.ParseInt(string(text), 10, 64)
	var digits [20]byte
	return number, err == nil && string(strconv.AppendInt(digits[:0], number, 10)) == string(text)
}

// formatting is a Format with its texts prepared.
type formatting struct {
	*Format
	texts [][]byte
}

func newFormatting(f *Format) *formatting {
	x := &formatting{Format: f}
	for _, text := range f.Texts {
		x.texts = append(x.texts, []byte(text))
	}
	return x
}

// parse matches a string with the template: a hole takes everything before the first occurrence of
// the next text, and the last hole takes the rest. All values are nil if the string does not
// match. The value of an empty hole is nil.
func (f *formatting) parse(s *step, value *node) []*node {
	parts := s.lists.take(len(f.Integer))
	if value == nil || !value.isText() {
		return parts
	}
	plain := isPlain(value.text)
	rest, fits := bytes.CutPrefix(s.decode(value.text), f.texts[0])
	for i, integer := range f.Integer {
		var part []byte
		if fits {
			part, rest, fits = cutHole(rest, f.texts[i+1], i == len(f.Integer)-1)
		}
		if fits && len(part) > 0 {
			parts[i], fits = holeValue(s, part, integer, plain)
		}
	}
	if !fits {
		clear(parts)
	}
	return parts
}

// cutHole returns the part before the next text.
func cutHole(text, next []byte, last bool) (part, rest []byte, fits bool) {
	if last {
		part, fits = bytes.CutSuffix(text, next)
		return part, nil, fits
	}
	return bytes.Cut(text, next)
}

// holeValue returns a part as the value of the hub's field. An integer must be in its shortest
// form. plain is true if a string needs no escapes.
func holeValue(s *step, part []byte, integer, plain bool) (*node, bool) {
	switch {
	case !integer && plain:
		return s.enclose(part), true
	case !integer:
		return s.quote(part), true
	}
	if !isInteger(part) {
		return nil, false
	}
	return s.raw(part), true
}

// write fills the template. It returns nil if there are no values, or if one does not have the
// type of its hole.
func (f *formatting) write(s *step, parts []*node) *node {
	if !anyValue(parts) {
		return nil
	}
	var buffer [64]byte
	text := append(buffer[:0], f.texts[0]...)
	for i, part := range parts {
		if part != nil {
			printed, ok := holeText(s, part, f.Integer[i])
			if !ok {
				return nil
			}
			text = append(text, printed...)
		}
		text = append(text, f.texts[i+1]...)
	}
	return s.quote(text)
}

func holeText(s *step, part *node, integer bool) ([]byte, bool) {
	if integer {
		return part.text, isInteger(part.text)
	}
	if !part.isText() {
		return nil, false
	}
	return s.decode(part.text), true
}
