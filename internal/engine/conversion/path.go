// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// Path leads from an object, or from an element of a list or map, to a field. A segment such as [name=main] selects one
// element of a list.
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
		if name == Each || IsSelector(name) {
			return "", "", fmt.Errorf("a quoted name cannot be %s", name)
		}
		return name, rest, nil
	case strings.HasPrefix(text, "["):
		end := strings.Index(text, "]") + 1
		if member, value, _ := tree.CutSelector(text[:end]); member == "" || value == "" {
			return "", "", errors.New("neither [*] nor the key of an element, such as [name=main],")
		}
		return text[:end], text[end:], nil
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

// IsSelector reports whether a segment selects one element of a list.
func IsSelector(segment string) bool {
	_, _, is := tree.CutSelector(segment)
	return is
}

// String returns the path as it is written in a policy.
func (p Path) String() string {
	var text strings.Builder
	for _, segment := range p {
		switch {
		case segment == Each || IsSelector(segment):
			text.WriteString(segment)
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
	return len(p) >= len(prefix) && slices.Equal(p[:len(prefix)], prefix)
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
