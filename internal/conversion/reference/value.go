// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Decode reads JSON: nil, bool, json.Number, string, []any and map[string]any.
// Numbers are their text.
func Decode(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, fmt.Errorf("something stands behind the value: %w", err)
	}
	return value, nil
}

// marshal encodes a decoded value.
func marshal(value any) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err) // it was decoded from JSON
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// Equal compares decoded values: the order of members means nothing, and numbers
// are their text.
func Equal(a, b any) bool { return reflect.DeepEqual(a, b) }

// none stands for the absence of a value, unlike nil, which is null.
var none any = struct{}{}

type path []string

var (
	escapes   = strings.NewReplacer("~", "~0", "/", "~1")
	unescapes = strings.NewReplacer("~1", "/", "~0", "~")
)

// pointer returns the path as a JSON Pointer, RFC 6901.
func (p path) pointer() string {
	var text strings.Builder
	for _, name := range p {
		text.WriteString("/" + escapes.Replace(name))
	}
	return text.String()
}

func (p path) has(prefix path) bool {
	return len(p) >= len(prefix) && slices.Equal(p[:len(prefix)], prefix)
}

// find returns the value at a path, or none.
func find(in any, at path) any {
	for _, name := range at {
		object, _ := in.(map[string]any)
		value, found := object[name]
		if !found {
			return none
		}
		in = value
	}
	return in
}

// put sets the value at a path. It creates the objects on the path, and replaces values that are
// not objects.
func put(in map[string]any, at path, value any) {
	for _, name := range at[:len(at)-1] {
		next, isObject := in[name].(map[string]any)
		if !isObject {
			next = map[string]any{}
			in[name] = next
		}
		in = next
	}
	in[at[len(at)-1]] = value
}

// remove deletes the value at a path.
func remove(in any, at path) {
	if parent, isObject := find(in, at[:len(at)-1]).(map[string]any); isObject {
		delete(parent, at[len(at)-1])
	}
}

func isObject(value any) bool {
	_, is := value.(map[string]any)
	return is
}

func isList(value any) bool {
	_, is := value.([]any)
	return is
}

// hasNoMembers reports whether there is a value without members: a scalar, a null, or an empty
// object or list.
func hasNoMembers(value any) bool {
	object, _ := value.(map[string]any)
	list, _ := value.([]any)
	return value != none && len(object)+len(list) == 0
}

// isEmptyContainer reports whether a value is a null, or an empty object or list.
func isEmptyContainer(value any) bool {
	return hasNoMembers(value) && (value == nil || isList(value) || isObject(value))
}

func clone(value any) any {
	switch value := value.(type) {
	case map[string]any:
		copied := map[string]any{}
		for name := range value {
			copied[name] = clone(value[name])
		}
		return copied
	case []any:
		copied := make([]any, len(value))
		for i := range value {
			copied[i] = clone(value[i])
		}
		return copied
	}
	return value
}

// digest returns a hash that shows later whether a value has changed.
func digest(value any) any {
	sum := sha256.Sum256([]byte(canonical(value)))
	return hex.EncodeToString(sum[:])[:16]
}

// canonical encodes a value without white space, with members sorted by the bytes of their names,
// and with as few escapes as possible.
func canonical(value any) string {
	var parts []string
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			parts = append(parts, literal(name)+":"+canonical(value[name]))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case []any:
		for _, element := range value {
			parts = append(parts, canonical(element))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case string:
		return literal(value)
	}
	return marshal(value)
}

func literal(text string) string {
	var out strings.Builder
	for _, char := range text {
		switch {
		case char == '"' || char == '\\':
			out.WriteString(`\` + string(char))
		case char == '\n' || char == '\r' || char == '\t':
			out.WriteString(map[rune]string{'\n': `\n`, '\r': `\r`, '\t': `\t`}[char])
		case char < ' ':
			fmt.Fprintf(&out, `\u%04x`, char)
		default:
			out.WriteRune(char)
		}
	}
	return `"` + out.String() + `"`
}
