// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode/utf16"

	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
)

// Text encodes a decoded value in unusual notation: members in any order, white space anywhere, and
// unnecessary escapes.
func (c *Choices) Text(value any) []byte {
	w := writer{Choices: c, unusual: c.Rarely(3)}
	w.value(value)
	return w.out
}

// writer only shuffles members, unless unusual is set.
type writer struct {
	*Choices
	unusual bool
	out     []byte
}

func (w *writer) value(value any) {
	w.space()
	switch value := value.(type) {
	case map[string]any:
		w.object(value)
	case []any:
		w.out = append(w.out, '[')
		for i := range value {
			w.comma(i)
			w.value(value[i])
		}
		w.out = append(w.out, ']')
	case string:
		w.text(value)
	case json.Number:
		w.out = append(w.out, value...)
	default:
		w.out = fmt.Append(w.out, map[any]string{nil: "null", true: "true", false: "false"}[value])
	}
	w.space()
}

func (w *writer) object(object map[string]any) {
	w.out = append(w.out, '{')
	for i, name := range Shuffled(w.Choices, slices.Sorted(maps.Keys(object))) {
		w.comma(i)
		w.space()
		w.text(name)
		w.space()
		w.out = append(w.out, ':')
		w.value(object[name])
	}
	w.out = append(w.out, '}')
}

func (w *writer) comma(i int) {
	if i > 0 {
		w.out = append(w.out, ',')
	}
}

func (w *writer) space() {
	if w.unusual && w.Rarely(4) {
		w.out = append(w.out, One(w.Choices, " ", "\n\t", "\r\n", "    ")...)
	}
}

func (w *writer) text(text string) {
	w.out = append(w.out, '"')
	for _, char := range text {
		switch {
		case w.unusual && char == '/' && w.Rarely(2):
			w.out = append(w.out, `\/`...)
		case char < ' ' || char == '"' || char == '\\' || w.unusual && w.Rarely(4):
			w.escape(char)
		default:
			w.out = append(w.out, string(char)...)
		}
	}
	w.out = append(w.out, '"')
}

var shortEscapes = map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`, '\f': `\f`}

func (w *writer) escape(char rune) {
	escaped := shortEscapes[char]
	if escaped == "" || w.unusual && w.Rarely(2) {
		escaped = ""
		for _, unit := range utf16.Encode([]rune{char}) {
			escaped += fmt.Sprintf(One(w.Choices, `\u%04x`, `\u%04X`), unit)
		}
	}
	w.out = append(w.out, escaped...)
}

// Plain encodes a decoded value in a single notation.
func Plain(value any) string { return string(preserved.Encode(value)) }
