// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
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

// IsEnvelope reports whether a field of an object is the API server's.
func IsEnvelope(name string) bool {
	return name == "apiVersion" || name == "kind" || name == "metadata"
}

// IsLabel reports whether a path leads to a label.
func (p Path) IsLabel() bool { return len(p) > 1 && p[0] == "metadata" && p[1] == "labels" }

// CheckMetadata says why a rule cannot have a path into the metadata, nil where it can:
// it allows single labels and annotations. One whose name the API
// server refuses would make an object unreadable, and ours are not for rules.
func CheckMetadata(path Path) error {
	if len(path) > 1 && path[1] != "labels" && path[1] != "annotations" {
		return fmt.Errorf("%s is the API server's, and is the same in every version: remove the rule; of the metadata, only single labels and annotations convert", path)
	}
	if len(path) != 3 || path[2] == Each {
		return errors.New(`of the metadata, only single labels and annotations convert: write .metadata.labels["name"]`)
	}
	if strings.HasPrefix(path[2], PreservedPrefix) {
		return fmt.Errorf("%s is where conversion-operator preserves fields: use another name", path)
	}
	name := path[2]
	if path[1] == "annotations" {
		name = strings.ToLower(name) // as the API server does with those alone
	}
	if problems := validation.IsQualifiedName(name); len(problems) > 0 {
		return fmt.Errorf("%s cannot be: %s: correct the name", path, strings.Join(problems, ", "))
	}
	return nil
}

// pathContext is where a scope stands in an object: the element of a list or map. The
// root's is nil. It is written as a JSON Pointer only where something is kept.
type pathContext struct {
	above *pathContext
	in    *collection
	// element is named by its key in a map, and by its keys in a list that has
	// such. Without an element there is an index.
	element *node
	index   int
}

// width is about how long the place of a list or map is, without its elements', as
// far as places are looked up at all: each element's is as long.
func (h *step) width(at *pathContext) int {
	if len(h.restore) == 0 {
		return 0
	}
	width := len(at.in.pointer)
	for above := at.above; above != nil; above = above.above {
		width += len(above.in.pointer)
		if above.element == nil {
			continue
		}
		width += len(above.element.key)
		for i := range above.in.keys {
			if value := above.element.get(&above.in.keys[i]); value != nil {
				width += len(value.text)
			}
		}
	}
	return width
}

// append writes a place as a JSON Pointer.
func (p *pathContext) append(dst []byte) []byte {
	if p == nil {
		return dst
	}
	dst = append(p.above.append(dst), p.in.pointer...)
	dst = append(dst, '/')
	switch {
	case p.element == nil:
		return strconv.AppendInt(dst, int64(p.index), 10)
	case p.in.isMap:
		return append(dst, escapePointer(p.element.label())...)
	}
	return appendSelector(dst, p.element, p.in.keys)
}

// appendSelector names an element of a list by its keys: [name="http",protocol="TCP"].
func appendSelector(dst []byte, element *node, keys []name) []byte {
	for i := range keys {
		dst = append(dst, "[,"[min(i, 1)])
		dst = append(append(dst, escapePointer(keys[i].text)...), '=')
		if value := element.get(&keys[i]); value != nil {
			dst = append(dst, escapePointer(canonical(value))...)
		}
	}
	return append(dst, ']')
}
