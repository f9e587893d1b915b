// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"regexp"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// path leads to a field. Its segments are names, indexes such as [0], and
// conversion.Each.
type path []string

// segments of a path as users and policies write it.
var segments = regexp.MustCompile(`\[\*\]|\[[0-9]+\]|\["[^"]+"\]|\.?[^.\[]+`)

// parse reads a path: .spec.ports[*].name, spec.ports[0].name, .labels["a.b/c"].
func parse(text string) path {
	var p path
	for _, segment := range segments.FindAllString(text, -1) {
		if quoted, ok := strings.CutPrefix(segment, `["`); ok {
			segment = strings.TrimSuffix(quoted, `"]`)
		}
		p = append(p, strings.TrimPrefix(segment, "."))
	}
	return p
}

// Split returns the segments of a field's path: names, and indexes such as [0].
func Split(path string) []string { return parse(path) }

// Join writes segments as a field's path.
func Join(segments []string) string { return path(segments).String() }

func (p path) String() string {
	var text strings.Builder
	for _, segment := range p {
		if strings.HasPrefix(segment, "[") && strings.HasSuffix(segment, "]") {
			text.WriteString(segment)
		} else {
			text.WriteString(conversion.Path{segment}.String())
		}
	}
	return text.String()
}

// child returns the path of a member or element. It shares no memory with p.
func (p path) child(segment string) path { return append(slices.Clip(p), segment) }

// matches reports whether p leads to a field of the pattern, or below it.
func (p path) matches(pattern path) bool {
	return len(p) >= len(pattern) && conversion.Path(p).Meets(conversion.Path(pattern))
}

// names counts the names and indexes in a pattern. A pattern with more of them is more specific.
func (p path) names() int {
	n := 0
	for _, segment := range p {
		if segment != conversion.Each {
			n++
		}
	}
	return n
}

// substitute returns the pattern with the elements that p has where root has [*].
func (p path) substitute(pattern, root path) path {
	var elements []string
	for i, segment := range root {
		if segment == conversion.Each && i < len(p) {
			elements = append(elements, p[i])
		}
	}
	found := make(path, 0, len(pattern))
	for _, segment := range pattern {
		if segment == conversion.Each && len(elements) > 0 {
			segment, elements = elements[0], elements[1:]
		}
		found = append(found, segment)
	}
	return found
}
