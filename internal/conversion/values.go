// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"math"
	"strconv"
	"time"
)

// translate looks a string up in the table: the first pair that has it counts. A
// value that is not in the table stays unchanged.
func translate(h *step, table []quotedPair, value *node, toHub bool) *node {
	if len(table) == 0 || !value.isText() {
		return value
	}
	from, to := 1, 0
	if toHub {
		from, to = 0, 1
	}
	text := value.text
	if !isPlain(text) {
		text = h.quote(h.decode(text)).text
	}
	for i := range table {
		if bytes.Equal(table[i][from], text) {
			return h.raw(table[i][to])
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

// elements looks into a list.
var elements = &look{each: &look{}}

// convert makes a value a list, or takes the first element of one. What is no
// list where there should be one has no image.
func (w *Wrap) convert(h *step, value *node, toHub bool) *node {
	if toHub == w.Hub {
		list := h.node()
		list.kind, list.open = array, true
		list.add(value)
		return list
	}
	list, err := h.parse(h.bytes(value), elements)
	if err != nil || list.kind != array {
		return nil
	}
	return list.first
}

// MaxCastSeconds is the longest duration that Go can write, in seconds: a rule casts no
// larger integer.
const MaxCastSeconds = math.MaxInt64 / int64(time.Second)

// convert reads a string, or writes an integer. What is neither has no image.
func (c *Cast) convert(h *step, value *node, toHub bool) *node {
	if toHub == c.Hub {
		return c.write(h, value.text)
	}
	if !value.isText() {
		return nil
	}
	return c.read(h, h.decode(value.text))
}

func (c *Cast) write(h *step, text []byte) *node {
	number, ok := readInteger(text)
	switch {
	case !ok || c.Seconds && (number > MaxCastSeconds || number < -MaxCastSeconds):
		return nil
	case c.Seconds:
		return h.quote([]byte((time.Duration(number) * time.Second).String()))
	}
	return h.quote(text)
}

func (c *Cast) read(h *step, text []byte) *node {
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

// formatting is a Format, prepared.
type formatting struct {
	*Format
	// texts are those of the Format.
	texts [][]byte
}

func newFormatting(f *Format) *formatting {
	x := &formatting{Format: f}
	for _, text := range f.Texts {
		x.texts = append(x.texts, []byte(text))
	}
	return x
}

// parse reads a string by the template: a hole takes what comes before the first
// place where the next text stands, and the last hole the rest. Nothing is
// read of a string that does not fit. A hole that takes nothing gives no field.
func (f *formatting) parse(h *step, value *node) []*node {
	parts := h.lists.take(len(f.Integer))
	if value == nil || !value.isText() {
		return parts
	}
	plain := isPlain(value.text)
	rest, fits := bytes.CutPrefix(h.decode(value.text), f.texts[0])
	for i, integer := range f.Integer {
		var part []byte
		if fits {
			part, rest, fits = cutHole(rest, f.texts[i+1], i == len(f.Integer)-1)
		}
		if fits && len(part) > 0 {
			parts[i], fits = holeValue(h, part, integer, plain)
		}
	}
	if !fits {
		clear(parts)
	}
	return parts
}

// cutHole takes what stands before the next text.
func cutHole(text, next []byte, last bool) (part, rest []byte, fits bool) {
	if last {
		part, fits = bytes.CutSuffix(text, next)
		return part, nil, fits
	}
	return bytes.Cut(text, next)
}

// holeValue writes a part as the hub's field has it. An integer must be as it
// would be printed: 7, not 007. A part of plain text needs no escapes.
func holeValue(h *step, part []byte, integer, plain bool) (*node, bool) {
	switch {
	case !integer && plain:
		return h.enclose(part), true
	case !integer:
		return h.quote(part), true
	}
	if !isInteger(part) {
		return nil, false
	}
	return h.raw(part), true
}

// write prints the fields by the template, nil where there are none, or where
// one of them is not of the hole's type.
func (f *formatting) write(h *step, parts []*node) *node {
	if !some(parts) {
		return nil
	}
	var buffer [64]byte
	text := append(buffer[:0], f.texts[0]...)
	for i, part := range parts {
		if part != nil {
			printed, ok := holeText(h, part, f.Integer[i])
			if !ok {
				return nil
			}
			text = append(text, printed...)
		}
		text = append(text, f.texts[i+1]...)
	}
	return h.quote(text)
}

func holeText(h *step, part *node, integer bool) ([]byte, bool) {
	if integer {
		return part.text, isInteger(part.text)
	}
	if !part.isText() {
		return nil, false
	}
	return h.decode(part.text), true
}
