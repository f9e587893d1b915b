// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"strconv"
)

// translate translates a value by the first matching pair of the table. A value that is not in the
// table stays unchanged, or has no image if the table is closed.
func (e *exchange) translate(s *step, value *node, toHub bool) *node {
	table := e.table
	if len(table) == 0 {
		return value
	}
	from, to := 1, 0
	if toHub {
		from, to = 0, 1
	}
	text := value.text
	if value.isText() && !isPlain(text) {
		text = s.quote(s.decode(text)).text
	}
	for i := range table {
		if bytes.Equal(table[i][from], text) {
			return s.raw(table[i][to])
		}
	}
	if e.Closed {
		return nil
	}
	return value
}

// literalPair is a pair of a table as JSON values.
type literalPair [2][]byte

func (e *Exchange) literalPairs() []literalPair {
	pairs := make([]literalPair, 0, len(e.Table)+len(e.Literals))
	for _, pair := range e.Table {
		pairs = append(pairs, literalPair{appendQuoted(nil, pair[0]), appendQuoted(nil, pair[1])})
	}
	for _, pair := range e.Literals {
		pairs = append(pairs, literalPair{[]byte(pair[0]), []byte(pair[1])})
	}
	return pairs
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
