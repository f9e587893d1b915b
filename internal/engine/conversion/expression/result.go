// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"encoding/base64"
	"math"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apiserver/pkg/cel/common"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/document"
)

const (
	// maxResultBytes is the maximum size of one result, in bytes: etcd stores no object of more
	// than 1.5 MiB, and an object has more than one field.
	maxResultBytes = 1 << 20
	// maxResultDepth is the maximum nesting of lists and maps in a result.
	maxResultDepth = 64
)

// writeResult returns the JSON text of a result, or nil if the field does not allow it, or if it
// is null or optional.none(). Members are sorted by name, integers are exact, doubles are in their
// shortest exact form, and only necessary escapes are used.
func writeResult(result ref.Val, s common.Schema) []byte {
	if optional, is := result.(*types.Optional); is {
		if !optional.HasValue() {
			return nil
		}
		result = optional.GetValue()
	}
	w := writer{remaining: maxResultBytes}
	value, fits := w.fit(result, s, 0)
	if !fits || value == nil {
		return nil
	}
	text, isJSON := document.Encode(value)
	if !isJSON || len(text) >= maxResultBytes {
		return nil
	}
	return text
}

// writer turns results into values for package document, within a size limit.
type writer struct{ remaining int }

// fit returns a value in the form of the field's schema. Source objects hold plain Go values;
// results of expressions hold CEL values.
func (w *writer) fit(value any, s common.Schema, depth int) (any, bool) {
	if w.remaining--; w.remaining < 0 || depth > maxResultDepth {
		return nil, false
	}
	switch value := value.(type) {
	case nil, types.Null:
		return nil, depth == 0 || s.Nullable() || Untyped(s)
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

func (w *writer) fitScalar(value any, s common.Schema) (any, bool) {
	switch value := value.(type) {
	case bool:
		return value, s.Type() == "boolean" || Untyped(s)
	case int64:
		return value, s.Type() == "integer" || s.Type() == "number" || s.IsXIntOrString() || Untyped(s)
	case float64:
		return value, !math.IsNaN(value) && !math.IsInf(value, 0) && (s.Type() == "number" || Untyped(s))
	case string:
		w.remaining -= len(value)
		return value, w.remaining >= 0 && (s.Type() == "string" || s.IsXIntOrString() || Untyped(s))
	case []byte:
		w.remaining -= len(value)
		return base64.StdEncoding.EncodeToString(value), w.remaining >= 0 && (Format(s) == "byte" || Untyped(s))
	case time.Duration:
		return value.String(), Format(s) == "duration" || Untyped(s)
	case time.Time:
		if Format(s) == "date" {
			return value.UTC().Format(time.DateOnly), true
		}
		return value.UTC().Format(time.RFC3339Nano), Format(s) == "date-time" || Untyped(s)
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

func (w *writer) fitList(list []any, s common.Schema, depth int) (any, bool) {
	of := s.Items()
	switch {
	case Untyped(s) || s.Type() == "array" && of == nil && s.IsXPreserveUnknownFields():
		of = Anything
	case s.Type() != "array" || of == nil:
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

// membersOf returns the members of a map, nil if a key is not a string. Members of source objects
// are used unchanged, because their schema need not name all members.
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

func (w *writer) fitMap(m map[string]any, s common.Schema, depth int) (any, bool) {
	if m == nil || s.Type() != "object" && !Untyped(s) {
		return nil, false
	}
	members := make(map[string]any, len(m))
	for name, value := range m {
		w.remaining -= len(name)
		of := Member(s, name)
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
