// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/conversion/expression"
)

var decimal = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)

// isInteger reports whether a text is a decimal integer of 64 bits in canonical form.
func isInteger(text string) bool {
	number, read := new(big.Int).SetString(text, 10)
	return read && decimal.MatchString(text) && number.IsInt64()
}

// template is a string with holes, and the texts around them.
type template struct {
	texts   []string
	integer []bool
}

// parse splits a string into the values of the holes. Each hole ends at the first occurrence of the
// next text; the last hole ends before the last text. If any part of the string does not fit, there
// are no values.
func (t *template) parse(values []any) []any {
	nothing := slices.Repeat([]any{none}, len(t.integer))
	text, isText := values[0].(string)
	last := len(t.integer)
	if !isText || !strings.HasPrefix(text, t.texts[0]) {
		return nothing
	}
	text = strings.TrimPrefix(text, t.texts[0])
	parts := slices.Clone(nothing)
	for i, integer := range t.integer {
		end := strings.Index(text, t.texts[i+1])
		if i+1 == last {
			end = len(text) - len(t.texts[last])
		}
		if end < 0 || !strings.HasPrefix(text[end:], t.texts[i+1]) || end > 0 && integer && !isInteger(text[:end]) {
			return nothing
		}
		switch {
		case end > 0 && integer:
			parts[i] = json.Number(text[:end])
		case end > 0:
			parts[i] = text[:end]
		}
		text = text[end+len(t.texts[i+1]):]
	}
	return parts
}

// print joins the values of the holes; a missing value is empty. If all values are missing, or one
// has another type, there is no string.
func (t *template) print(parts []any) []any {
	var text strings.Builder
	text.WriteString(t.texts[0])
	for i, part := range parts {
		switch part := part.(type) {
		case json.Number:
			if !t.integer[i] || !isInteger(part.String()) {
				return []any{none}
			}
			text.WriteString(part.String())
		case string:
			if t.integer[i] {
				return []any{none}
			}
			text.WriteString(part)
		default:
			if part != none {
				return []any{none}
			}
		}
		text.WriteString(t.texts[i+1])
	}
	if !anyPresent(parts) {
		return []any{none}
	}
	return []any{text.String()}
}

// translate replaces strings by a table. It returns other values unchanged.
func translate(table [][2]string, from, to int) func(any) any {
	return func(value any) any {
		for _, pair := range table {
			if value == pair[from] {
				return pair[to]
			}
		}
		return value
	}
}

// lookUp replaces values by a table of JSON values. It returns other values unchanged, or none if
// the table is closed.
func lookUp(literals [][2]string, from, to int, closed bool) func(any) any {
	table := map[any]any{}
	for _, pair := range slices.Backward(literals) {
		key, err := Decode([]byte(pair[from]))
		value, valueErr := Decode([]byte(pair[to]))
		if err != nil || valueErr != nil {
			panic("the ruleset was compiled with these values")
		}
		table[key] = value
	}
	return func(value any) any {
		switch value.(type) {
		case string, bool, json.Number:
			if image, ok := table[value]; ok {
				return image
			}
		}
		if closed {
			return none
		}
		return value
	}
}

func wrap(value any) any { return []any{value} }

func unwrap(value any) any {
	list, _ := value.([]any)
	if len(list) == 0 {
		return none
	}
	return list[0]
}

// evaluate computes fields by expressions. Package expression defines them; they are not part of
// the law.
func evaluate(from, to []celField, bounds expression.Bounds, whenMissing bool, metadata any) func([]any) []any {
	program, err := expression.New(read(from), read(to), bounds)
	if err != nil {
		panic(fmt.Sprintf("the ruleset was compiled with these expressions: %v", err))
	}
	return func(values []any) []any {
		texts := make([][]byte, len(values))
		for i, value := range values {
			if value != none {
				texts[i] = []byte(marshal(value))
			}
		}
		in := expression.Input{Values: texts, WhenMissing: whenMissing, Name: textIn(metadata, "name"), Namespace: textIn(metadata, "namespace")}
		var images []any
		for _, text := range program.Evaluate(in, new(expression.Budget)) {
			image, err := Decode(text)
			if text == nil || err != nil {
				image = none
			}
			images = append(images, image)
		}
		return images
	}
}

// textIn returns a text in the metadata as JSON, nil if there is none.
func textIn(metadata any, name string) []byte {
	if text, isText := find(metadata, path{name}).(string); isText && text != "" {
		return []byte(marshal(text))
	}
	return nil
}

func read(fields []celField) []expression.Field {
	var all []expression.Field
	for _, f := range fields {
		schema, err := expression.ReadSchema(f.Schema)
		if err != nil {
			panic(fmt.Sprintf("the ruleset was compiled with this schema: %v", err))
		}
		all = append(all, expression.Field{Name: f.Name, Schema: schema, Expression: f.Expression})
	}
	return all
}
