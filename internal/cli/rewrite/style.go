// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rewrite

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
)

// style is how the author of a text writes.
type style struct {
	newline string
	// step is the indentation of members below their mapping, and dashes that of elements below
	// the name of their list.
	step, dashes int
	// json is true for JSON.
	json bool
}

func styleOf(text string, root *node) style {
	s := style{newline: newlineOf(text), step: 2, json: root.flow && len(root.entries) > 0 && root.entries[0].isQuoted()}
	if s.measure(root); s.json {
		margin := text[root.entries[0].start:root.entries[0].mark]
		if i := strings.LastIndexByte(margin, '\n'); i >= 0 {
			s.step = len(margin) - i - 1
		}
	}
	return s
}

// newlineOf returns the line break of a text's first line.
func newlineOf(text string) string {
	if i := strings.IndexByte(text, '\n'); i > 0 && text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// isQuoted reports whether an entry has a key in the quotes of JSON.
func (e *entry) isQuoted() bool {
	return e.key != nil && e.key.source.Style&yaml.DoubleQuotedStyle != 0
}

// measure finds the indentation of the first mapping and the first list in block style.
func (s *style) measure(root *node) {
	var mapping, list bool
	var visit func(n *node)
	visit = func(n *node) {
		for _, each := range n.entries {
			v := each.value
			if n.isBlock() && n.isMapping() && v.isBlock() {
				if deeper := v.column - n.column; v.isMapping() && !mapping {
					s.step, mapping = deeper, true
				} else if v.isSequence() && !list {
					s.dashes, list = deeper, true
				}
			}
			visit(v)
		}
	}
	visit(root)
}

// plainInBrackets matches text that needs no quotes in brackets, if it needs none elsewhere.
var plainInBrackets = regexp.MustCompile(`^[A-Za-z0-9_/.][A-Za-z0-9_./ -]*$`)

// scalar returns the text of a scalar or an empty collection, with the quotes of the value that it
// replaces.
func (e *editor) scalar(value any, old *node) string {
	text, isText := value.(string)
	encoded := preserved.Encode(value)
	switch {
	case e.json:
		return string(encoded)
	case old != nil && isText && old.source.Style&yaml.DoubleQuotedStyle != 0:
		return string(encoded)
	case old != nil && isText && old.source.Style&yaml.SingleQuotedStyle != 0 && !strings.ContainsAny(text, "\n\r\t'"):
		return "'" + text + "'"
	}
	written, err := manifest.Encode(encoded)
	if err != nil {
		return string(encoded) // JSON is YAML
	}
	return strings.TrimSuffix(written, "\n")
}

// indented indents all lines of a scalar but the first, below an entry in a column.
func (e *editor) indented(text string, column int) string {
	first, rest, several := strings.Cut(text, "\n")
	if !several {
		return text
	}
	return first + e.newline + strings.TrimSuffix(e.shifted(strings.ReplaceAll(rest, "\n", e.newline)+e.newline, column), e.newline)
}

// shifted moves lines to the right, or to the left. Blank lines stay.
func (e *editor) shifted(text string, by int) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		switch {
		case strings.TrimSpace(line) == "":
		case by > 0:
			out.WriteString(strings.Repeat(" ", by))
		default:
			margin := len(line) - len(strings.TrimLeft(line, " "))
			line = line[min(-by, margin):]
		}
		out.WriteString(line)
	}
	return out.String()
}

// inline returns the text of any value in brackets, behind white space.
func (e *editor) inline(value any, margin string) string {
	encoded := preserved.Encode(value)
	switch {
	case !e.json:
		return e.inlineYAML(value)
	case !isLarge(value) || !strings.Contains(margin, "\n"):
		return string(encoded)
	}
	var out bytes.Buffer
	indent := margin[strings.LastIndexByte(margin, '\n')+1:]
	if json.Indent(&out, encoded, indent, strings.Repeat(" ", e.step)) != nil {
		return string(encoded)
	}
	return strings.ReplaceAll(out.String(), "\n", e.newline)
}

func (e *editor) inlineYAML(value any) string {
	var items []string
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			items = append(items, e.inlineYAML(name)+": "+e.inlineYAML(value[name]))
		}
		return "{" + strings.Join(items, ", ") + "}"
	case []any:
		for _, element := range value {
			items = append(items, e.inlineYAML(element))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case string:
		if text := e.scalar(value, nil); plainInBrackets.MatchString(text) {
			return text
		}
	}
	return string(preserved.Encode(value))
}
