// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// path leads to a field: names, indexes of elements, and in the paths of policies
// each for all elements.
type path []string

const each = "[*]"

// segments of a path as people and policies write it.
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

func (p path) String() string {
	var text strings.Builder
	for _, segment := range p {
		switch {
		case isElement(segment):
			text.WriteString(segment)
		case strings.ContainsAny(segment, ".[]/\""):
			text.WriteString(`["` + segment + `"]`)
		default:
			text.WriteString("." + segment)
		}
	}
	return text.String()
}

// isElement tells an element of a list, or all of them, from a name.
func isElement(segment string) bool {
	return strings.HasPrefix(segment, "[") && strings.HasSuffix(segment, "]")
}

func element(index int) string { return "[" + strconv.Itoa(index) + "]" }

// down is the path of a member or element. It shares no memory with p.
func (p path) down(segment string) path { return append(slices.Clip(p), segment) }

// begins reports whether p leads to what pattern means, or into it.
func (p path) begins(pattern path) bool {
	if len(p) < len(pattern) {
		return false
	}
	for i, segment := range pattern {
		if segment != each && p[i] != each && segment != p[i] {
			return false
		}
	}
	return true
}

// names counts the segments of a pattern that are names: the more, the better it fits.
func (p path) names() int {
	n := 0
	for _, segment := range p {
		if segment != each {
			n++
		}
	}
	return n
}

// at is the pattern with the elements that p names in the place of each.
func (p path) at(pattern, of path) path {
	var elements []string
	for i, segment := range of {
		if segment == each && i < len(p) {
			elements = append(elements, p[i])
		}
	}
	found := make(path, 0, len(pattern))
	for _, segment := range pattern {
		if segment == each && len(elements) > 0 {
			segment, elements = elements[0], elements[1:]
		}
		found = append(found, segment)
	}
	return found
}

// in is the value at the path, and whether there is one.
func (p path) in(tree any) (any, bool) {
	for _, segment := range p {
		switch node := tree.(type) {
		case map[string]any:
			below, there := node[segment]
			if !there {
				return nil, false
			}
			tree = below
		case []any:
			index, err := strconv.Atoi(strings.Trim(segment, "[]"))
			if err != nil || index < 0 || index >= len(node) {
				return nil, false
			}
			tree = node[index]
		default:
			return nil, false
		}
	}
	return tree, true
}
