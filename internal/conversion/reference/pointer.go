// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import "strings"

// segments returns the segments of a pointer, still escaped.
func segments(pointer string) []string { return strings.Split(pointer[1:], "/") }

// follow returns the value at segments, or none.
func follow(value any, rest []string) any {
	for _, segment := range rest {
		index, isIndex := indexOf(segment)
		switch held := value.(type) {
		case map[string]any:
			value = find(held, path{unescapes.Replace(segment)})
		case []any:
			switch {
			case strings.HasPrefix(segment, "["):
				value = selectElement(held, segment)
			case isIndex && index < len(held):
				value = held[index]
			default:
				return none
			}
		default:
			return none
		}
	}
	return value
}

// selectElement returns the only element of a list with the keys of a selector, or none.
func selectElement(list []any, name string) any {
	found, keys := none, selectorKeys(name)
	for _, element := range list {
		if len(keys) > 0 && isObject(element) && selector(element, keys) == name {
			if found != none {
				return none
			}
			found = element
		}
	}
	return found
}

// selectorKeys returns the names of the keys in [name="http",protocol="TCP"].
func selectorKeys(selector string) []string {
	var keys []string
	for _, part := range selectorParts(selector) {
		name, _, found := strings.Cut(part, "=")
		if !found {
			return nil
		}
		keys = append(keys, unescapes.Replace(name))
	}
	return keys
}

// selectorParts returns the keys in a selector, with their values. Values are JSON, so a comma separates
// two keys only outside of quotes, objects and lists.
func selectorParts(selector string) []string {
	inner, isSelector := strings.CutPrefix(selector, "[")
	inner, isClosed := strings.CutSuffix(inner, "]")
	if !isSelector || !isClosed {
		return nil
	}
	var parts []string
	quoted, escaped, depth, start := false, false, 0, 0
	for i, char := range inner {
		switch {
		case escaped:
			escaped = false
		case char == '\\':
			escaped = quoted
		case char == '"':
			quoted = !quoted
		case quoted:
		case char == '{' || char == '[':
			depth++
		case char == '}' || char == ']':
			depth--
		case char == ',' && depth == 0:
			parts, start = append(parts, inner[start:i]), i+1
		}
	}
	return append(parts, inner[start:])
}
