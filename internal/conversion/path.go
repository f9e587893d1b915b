// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// Path leads from an object, or from an element of a list or map, to a field.
type Path []string

// Each is the segment of a parsed path that goes through all elements.
const Each = "[*]"

// ParsePath reads a path of the API: .spec.ports[*].name, .metadata.labels["a.b/c"].
// The syntax is that of v1alpha1.Path; Each is a segment of its own. The error says how
// to write a path.
func ParsePath(text string) (Path, error) {
	var path Path
	for rest := text; rest != ""; {
		segment, after, err := nextSegment(rest)
		if err != nil {
			return nil, fmt.Errorf("%w at %q: write a path as .spec.ports[*].name", err, rest)
		}
		path, rest = append(path, segment), after
	}
	if len(path) == 0 || path[0] == Each {
		return nil, errors.New("a path begins with a field: write it as .spec.ports[*].name")
	}
	return path, nil
}

func nextSegment(text string) (segment, rest string, err error) {
	switch {
	case strings.HasPrefix(text, Each):
		return Each, text[len(Each):], nil
	case strings.HasPrefix(text, `["`):
		name, rest, closed := strings.Cut(text[2:], `"]`)
		if !closed || name == "" {
			return "", "", errors.New("a quoted name is not closed")
		}
		if name == Each {
			return "", "", errors.New("a quoted name cannot be [*]")
		}
		return name, rest, nil
	case strings.HasPrefix(text, "."):
		end := strings.IndexAny(text[1:], ".[") + 1
		if end == 0 {
			end = len(text)
		}
		if end == 1 {
			return "", "", errors.New("a name is empty")
		}
		return text[1:end], text[end:], nil
	}
	return "", "", errors.New("neither a name nor [*]")
}

// String writes a path as it is written in a policy.
func (p Path) String() string {
	var text strings.Builder
	for _, segment := range p {
		switch {
		case segment == Each:
			text.WriteString(Each)
		case strings.ContainsAny(segment, ".[]/\"") || segment == "":
			text.WriteString(`["` + segment + `"]`)
		default:
			text.WriteString("." + segment)
		}
	}
	return text.String()
}

// Pointer writes a path as a JSON Pointer, RFC 6901.
func (p Path) Pointer() string {
	var text strings.Builder
	for _, segment := range p {
		text.WriteString("/" + escapePointer(segment))
	}
	return text.String()
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func escapePointer(segment string) string { return pointerEscapes.Replace(segment) }

// appendPointerName writes a name as a segment of a JSON Pointer.
func appendPointerName(dst, name []byte) []byte {
	if bytes.IndexByte(name, '~') >= 0 || bytes.IndexByte(name, '/') >= 0 {
		return append(dst, escapePointer(string(name))...)
	}
	return append(dst, name...)
}

var pointerNames = strings.NewReplacer("~1", "/", "~0", "~")

func unescapePointer(segment string) string { return pointerNames.Replace(segment) }

// Meets reports whether the paths can lead to the same field, or one of them into
// the other: [*] leads to all elements, those that are named too.
func (p Path) Meets(other Path) bool {
	for i := range min(len(p), len(other)) {
		if p[i] != other[i] && p[i] != Each && other[i] != Each {
			return false
		}
	}
	return true
}

// HasPrefix reports whether p begins with prefix.
func (p Path) HasPrefix(prefix Path) bool {
	if len(p) < len(prefix) {
		return false
	}
	for i := range prefix {
		if p[i] != prefix[i] {
			return false
		}
	}
	return true
}
