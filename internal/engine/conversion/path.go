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

// Each is the segment of a parsed path that stands for all elements.
const Each = "[*]"

// ParsePath parses a path such as .spec.ports[*].name or .metadata.labels["a.b/c"]. The syntax is
// that of v1alpha1.Path; Each is a segment of its own. The error says how to write a path.
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

// String returns the path as it is written in a policy.
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

// Pointer returns the path as a JSON Pointer, RFC 6901.
func (p Path) Pointer() string {
	var text strings.Builder
	for _, segment := range p {
		text.WriteString("/" + escapePointer(segment))
	}
	return text.String()
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func escapePointer(segment string) string { return pointerEscapes.Replace(segment) }

// appendPointerName appends a name as a segment of a JSON Pointer.
func appendPointerName(dst, name []byte) []byte {
	if bytes.IndexByte(name, '~') >= 0 || bytes.IndexByte(name, '/') >= 0 {
		return append(dst, escapePointer(string(name))...)
	}
	return append(dst, name...)
}

var pointerNames = strings.NewReplacer("~1", "/", "~0", "~")

func unescapePointer(segment string) string { return pointerNames.Replace(segment) }

// Meets reports whether both paths can lead to the same field, or one of them into the other. [*]
// stands for any segment.
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

// IsEnvelope reports whether a top-level field belongs to the API server.
func IsEnvelope(name string) bool {
	return name == "apiVersion" || name == "kind" || name == "metadata"
}

// IsLabel reports whether a path leads to a label.
func (p Path) IsLabel() bool { return len(p) > 1 && p[0] == "metadata" && p[1] == "labels" }

// CheckMetadata returns an error if a rule must not use a path in the metadata. Rules may use
// single labels and annotations. A name that the API server refuses would make an object
// unreadable, and our own annotations are reserved.
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
		name = strings.ToLower(name) // the API server does so for annotations only
	}
	if problems := validation.IsQualifiedName(name); len(problems) > 0 {
		return fmt.Errorf("%s cannot be: %s: correct the name", path, strings.Join(problems, ", "))
	}
	return nil
}

// pathContext is the element of a list or map that is the object of a scope, nil for the root. It
// becomes a JSON Pointer only if something is preserved.
type pathContext struct {
	parent     *pathContext
	collection *collection
	// element is the element if it has a name: a key in a map, or keys in a list. Otherwise index
	// is used.
	element *node
	index   int
}

// width estimates the length of the pointer of a list or map. It is 0 if nothing is restored,
// because then no pointers are looked up.
func (s *step) width(pc *pathContext) int {
	if len(s.restore) == 0 {
		return 0
	}
	width := len(pc.collection.pointer)
	for above := pc.parent; above != nil; above = above.parent {
		width += len(above.collection.pointer)
		if above.element == nil {
			continue
		}
		width += len(above.element.key)
		for i := range above.collection.keys {
			if value := above.element.get(&above.collection.keys[i]); value != nil {
				width += len(value.text)
			}
		}
	}
	return width
}

// append appends the pointer of the element.
func (p *pathContext) append(dst []byte) []byte {
	if p == nil {
		return dst
	}
	dst = append(p.parent.append(dst), p.collection.pointer...)
	if p.collection.isObject {
		return dst
	}
	dst = append(dst, '/')
	switch {
	case p.element == nil:
		return strconv.AppendInt(dst, int64(p.index), 10)
	case p.collection.isMap:
		return append(dst, escapePointer(p.element.decodedName())...)
	}
	return appendSelector(dst, p.element, p.collection.keys)
}

// appendSelector appends the selector of an element of a list, such as
// [name="http",protocol="TCP"].
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
