// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"strconv"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// table is an exchange that copies a value, or translates it by pairs of JSON texts.
type table struct {
	*Exchange
	pairs [][2][]byte
}

func (e *Exchange) asTable() *table {
	t := &table{Exchange: e}
	for _, pair := range e.Table {
		t.pairs = append(t.pairs, [2][]byte{tree.Quote(nil, pair[0]), tree.Quote(nil, pair[1])})
	}
	for _, pair := range e.Literals {
		t.pairs = append(t.pairs, [2][]byte{[]byte(pair[0]), []byte(pair[1])})
	}
	return t
}

// image translates a value by the first pair that matches. A value that is not in the table stays unchanged, or has no image
// if the table is closed.
func (t *table) image(r *conversionRun, x *exchange, value *tree.Node) *tree.Node {
	switch {
	case t.Common != nil && !t.Common.allows(value):
		return nil
	case len(t.pairs) == 0:
		return value
	}
	from, to := 1, 0
	if x.toHub {
		from, to = 0, 1
	}
	text := value.JSON()
	if value.Is(tree.String) && bytes.IndexByte(text, '\\') >= 0 {
		text = tree.Quote(nil, value.Text())
	}
	for i := range t.pairs {
		if bytes.Equal(t.pairs[i][from], text) {
			return r.read(t.pairs[i][to])
		}
	}
	if t.Closed {
		return nil
	}
	return value
}

func (t *table) sample(f *filler, _ *exchange, text *tree.Node) *tree.Node {
	switch {
	case t.Common != nil && t.Common.Type == "integer":
		return f.NewScalar([]byte("80"))
	case len(t.pairs) > 0:
		return f.read(t.pairs[0][0])
	}
	return text
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

// Digest identifies an element, which is given as JSON, as preserved data does; empty if it is not JSON.
func Digest(element []byte) string {
	a := tree.NewArena()
	defer a.Free()
	value, err := a.Read(element)
	if err != nil {
		return ""
	}
	return a.Digest(value)
}

// Valid returns an error if the text is not one JSON value. It reads every byte once and makes no
// nodes: the least work that a converter can do, and so the baseline of benchmarks.
func Valid(text []byte) error {
	a := tree.NewArena()
	defer a.Free()
	_, err := a.ReadLevels(text, 0)
	return err
}
