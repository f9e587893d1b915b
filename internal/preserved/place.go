// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preserved

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
)

var pointerNames = strings.NewReplacer("~1", "/", "~0", "~")

// split are the segments of a pointer, without the escapes of names.
func split(pointer string) []string {
	segments := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i := range segments {
		segments[i] = pointerNames.Replace(segments[i])
	}
	return segments
}

// IsElement reports whether a segment of a pointer names an element of a list.
func IsElement(segment string) bool {
	return isSelector(segment) || strings.Trim(segment, "0123456789") == ""
}

func isSelector(segment string) bool {
	return strings.HasPrefix(segment, "[") && strings.HasSuffix(segment, "]")
}

// Path writes a pointer as a path in a policy, in which [*] stands for every element.
func Path(pointer string) string { return write(pointer, func(string) string { return "[*]" }) }

// Place writes a pointer as a path that names the very elements.
func Place(pointer string) string {
	return write(pointer, func(segment string) string { return "[" + strings.Trim(segment, "[]") + "]" })
}

func write(pointer string, element func(segment string) string) string {
	var path strings.Builder
	for _, segment := range split(pointer) {
		switch {
		case IsElement(segment):
			path.WriteString(element(segment))
		case plainName.MatchString(segment):
			path.WriteString("." + segment)
		default:
			path.WriteString(`["` + segment + `"]`)
		}
	}
	return path.String()
}

var plainName = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$-]*$`)

// find is what is at a place of a value, and whether there is anything.
func find(value any, segments []string) (found any, there bool) {
	for _, segment := range segments {
		switch node := value.(type) {
		case map[string]any:
			if value, there = node[segment]; !there {
				return nil, false
			}
		case []any:
			at := elementAt(node, segment)
			if at < 0 {
				return nil, false
			}
			value = node[at]
		default:
			return nil, false
		}
	}
	return value, true
}

// elementAt is the index of the element that a segment names, -1 where there is none.
func elementAt(list []any, segment string) int {
	if !isSelector(segment) {
		index, err := strconv.Atoi(segment)
		if err != nil || index < 0 || index >= len(list) {
			return -1
		}
		return index
	}
	keys := keysIn(segment)
	for i, element := range list {
		if hasKeys(element, keys) {
			return i
		}
	}
	return -1
}

func hasKeys(element any, keys map[string]any) bool {
	object, ok := element.(map[string]any)
	for name, value := range keys {
		if !ok || object[name] != value {
			return false
		}
	}
	return ok && len(keys) > 0
}

// keysIn are the keys in [name="http",port=80].
func keysIn(selector string) map[string]any {
	rest, keys := selector[1:len(selector)-1], map[string]any{}
	for rest != "" {
		name, behind, found := strings.Cut(rest, "=")
		decoder := json.NewDecoder(strings.NewReader(behind))
		decoder.UseNumber()
		var value any
		if !found || decoder.Decode(&value) != nil {
			return nil
		}
		switch value.(type) {
		case map[string]any, []any:
			return nil
		}
		keys[name] = value
		rest = strings.TrimPrefix(behind[decoder.InputOffset():], ",")
	}
	return keys
}

// decode reads JSON and keeps the text of numbers.
func decode(text []byte) any {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	_ = decoder.Decode(&value) // what cannot be read is null
	return value
}

// encode writes what was decoded.
func encode(value any) []byte {
	text, _ := json.Marshal(value) // what was decoded can be encoded
	return text
}
