// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

const (
	// largestResult is the most that one result may be, in bytes: etcd takes no
	// larger object than 1.5 MiB, and there is more in an object than one field.
	largestResult = 1 << 20
	// deepestResult bounds how lists and maps of a result contain one another.
	deepestResult = 64
)

// write gives the JSON text of a result: members sorted by name, integers exact,
// doubles in the shortest form that is exact, nothing escaped that need not be.
// A result that the field cannot hold is no value, and so are null and none.
func write(result ref.Val, s *Schema) []byte {
	if optional, is := result.(*types.Optional); is {
		if !optional.HasValue() {
			return nil
		}
		result = optional.GetValue()
	}
	w := writer{left: largestResult}
	value, fits := w.fit(result, s, 0)
	if !fits || value == nil {
		return nil
	}
	text := &bytes.Buffer{}
	encoder := json.NewEncoder(text)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(value) != nil || text.Len() > largestResult {
		return nil
	}
	return bytes.TrimRight(text.Bytes(), "\n")
}

// writer makes values that JSON has of a result.
type writer struct{ left int }

// fit gives a value as the field's schema has it. Objects that come from the
// source as they are hold plain values; what an expression makes holds values of
// expressions.
func (w *writer) fit(value any, s *Schema, depth int) (any, bool) {
	if w.left--; w.left < 0 || depth > deepestResult {
		return nil, false
	}
	switch value := value.(type) {
	case nil, types.Null:
		return nil, depth == 0 || s.nullable || s.Untyped()
	case traits.Lister:
		return w.fitList(elementsOf(value), s, depth)
	case traits.Mapper:
		return w.fitMap(membersOf(value), s, depth)
	case []any:
		return w.fitList(value, s, depth)
	case map[string]any:
		return w.fitMap(value, s, depth)
	case types.Bool, types.Int, types.Double, types.String, types.Bytes, types.Duration, types.Timestamp:
		return w.fitScalar(value.(ref.Val).Value(), s)
	}
	return w.fitScalar(value, s)
}

func (w *writer) fitScalar(value any, s *Schema) (any, bool) {
	switch value := value.(type) {
	case bool:
		return value, s.kind == "boolean" || s.Untyped()
	case int64:
		return value, s.kind == "integer" || s.kind == "number" || s.intOrString || s.Untyped()
	case float64:
		return value, !math.IsNaN(value) && !math.IsInf(value, 0) && (s.kind == "number" || s.Untyped())
	case string:
		w.left -= len(value)
		return value, w.left >= 0 && (s.kind == "string" || s.intOrString || s.Untyped())
	case []byte:
		w.left -= len(value)
		return base64.StdEncoding.EncodeToString(value), w.left >= 0 && (s.Format() == "byte" || s.Untyped())
	case time.Duration:
		return value.String(), s.Format() == "duration" || s.Untyped()
	case time.Time:
		if s.Format() == "date" {
			return value.UTC().Format(time.DateOnly), true
		}
		return value.UTC().Format(time.RFC3339Nano), s.Format() == "date-time" || s.Untyped()
	}
	return nil, false
}

func elementsOf(list traits.Lister) []any {
	elements := []any{}
	for it := list.Iterator(); it.HasNext() == types.True; {
		elements = append(elements, it.Next())
	}
	return elements
}

func (w *writer) fitList(list []any, s *Schema, depth int) (any, bool) {
	of := s.items
	switch {
	case s.Untyped() || s.kind == "array" && of == nil && s.preserves:
		of = Anything
	case s.kind != "array" || of == nil:
		return nil, false
	}
	elements := make([]any, len(list))
	for i, element := range list {
		var fits bool
		if elements[i], fits = w.fit(element, of, depth+1); !fits {
			return nil, false
		}
	}
	return elements, true
}

// membersOf a map, nil where a key is no string. Those of an object of the source
// are taken as they came: its schema need not name them all.
func membersOf(m traits.Mapper) map[string]any {
	if plain, is := m.Value().(map[string]any); is {
		return plain
	}
	members := map[string]any{}
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, isText := key.(types.String)
		if !isText {
			return nil
		}
		members[string(name)] = m.Get(key)
	}
	return members
}

func (w *writer) fitMap(m map[string]any, s *Schema, depth int) (any, bool) {
	if m == nil || s.kind != "object" && !s.Untyped() {
		return nil, false
	}
	members := make(map[string]any, len(m))
	for name, value := range m {
		w.left -= len(name)
		of := s.Member(name)
		if of == nil {
			return nil, false
		}
		var fits bool
		if members[name], fits = w.fit(value, of, depth+1); !fits {
			return nil, false
		}
	}
	return members, true
}
