// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preserved

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserve"
)

var pointerNames = strings.NewReplacer("~1", "/", "~0", "~")

// Split returns the segments of a JSON pointer, with unescaped names.
func Split(pointer string) []string {
	segments := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i := range segments {
		segments[i] = pointerNames.Replace(segments[i])
	}
	return segments
}

// isSelector reports whether a segment names an element by its keys: [name="http"].
func isSelector(segment string) bool {
	return strings.HasPrefix(segment, "[") && strings.HasSuffix(segment, "]")
}

// Path writes an address as a path of a policy, in which [*] stands for every element.
func Path(at preserve.Address) string {
	return write(at, func(string) string { return conversion.Each })
}

// ExactPath writes the place of an entry as a path that names each element by its index or keys.
func ExactPath(e preserve.Entry) string {
	return write(e.Place(), func(name string) string { return "[" + name + "]" })
}

// Segments returns the place of an entry as Find takes it.
func Segments(e preserve.Entry) (segments []string) {
	for _, segment := range e.Place() {
		name := segment.Name
		if segment.Element {
			name = "[" + name + "]"
		}
		segments = append(segments, name)
	}
	return segments
}

func write(at preserve.Address, element func(name string) string) string {
	var path strings.Builder
	for _, segment := range at {
		if segment.Element {
			path.WriteString(element(segment.Name))
		} else {
			path.WriteString(conversion.Path{segment.Name}.String())
		}
	}
	return path.String()
}

// Find returns the value at a path, and whether there is one. Segments are names, and
// indexes or keys of elements.
func Find(value any, path []string) (found any, ok bool) {
	for _, segment := range path {
		switch node := value.(type) {
		case map[string]any:
			if value, ok = node[segment]; !ok {
				return nil, false
			}
		case []any:
			index := indexOf(node, segment)
			if index < 0 {
				return nil, false
			}
			value = node[index]
		default:
			return nil, false
		}
	}
	return value, true
}

// indexOf returns the index of the element that a segment names, -1 if there is none.
func indexOf(list []any, segment string) int {
	if index, err := strconv.Atoi(strings.Trim(segment, "[]")); err == nil {
		if index < 0 || index >= len(list) {
			return -1
		}
		return index
	}
	if !isSelector(segment) {
		return -1
	}
	names, values := preserve.KeysIn(segment[1 : len(segment)-1])
	keys := make(map[string]any, len(names))
	for i, name := range names {
		keys[name], _ = Decode([]byte(values[i])) // it was read from JSON
	}
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
		if !ok || !reflect.DeepEqual(object[name], value) {
			return false
		}
	}
	return ok && len(keys) > 0
}

// Decode reads JSON, and keeps the text of numbers.
func Decode(text []byte) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	err = decoder.Decode(&value)
	return value, err
}

// Encode writes a value that Decode has read, without escapes for HTML.
func Encode(value any) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // every decoded value can be encoded
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// valueOf decodes the value of an entry, nil if it has none.
func valueOf(e preserve.Entry) any {
	if !e.HasValue() {
		return nil
	}
	value, _ := Decode(e.Value.JSON()) // it was read from JSON
	return value
}
