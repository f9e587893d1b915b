// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

const (
	// maxResultBytes is the maximum size of one result, in bytes: etcd stores no object of more
	// than 1.5 MiB, and an object has more than one field.
	maxResultBytes = 1 << 20
	// maxResultDepth is the maximum nesting of lists and maps in a result.
	maxResultDepth = 64
)

// writeResult returns the value of a result, nil if the schema does not allow it, or if it
// is null or optional.none(). Members are sorted by name, integers are exact, and doubles are in their
// shortest exact form.
func writeResult(a *tree.Arena, result ref.Val, s *shape.Schema) *tree.Node {
	w := writer{a, maxResultBytes}
	if n := w.node(result, s, 0); n != nil && !n.Is(tree.Null) && s.Fits(n) == nil {
		return n
	}
	return nil
}

// writer makes nodes of results, within a size limit. Whether values fit is not its concern, but what a schema has no place for
// has no value.
type writer struct {
	*tree.Arena
	remaining int
}

// node returns a value in the form of the schema, nil if there is none. Source objects hold plain Go values;
// results of expressions hold CEL values.
func (w *writer) node(value any, s *shape.Schema, depth int) *tree.Node {
	if s == nil || depth > maxResultDepth || !w.takes(1) {
		return nil
	}
	switch value := value.(type) {
	case *types.Optional:
		if !value.HasValue() {
			return nil
		}
		return w.node(value.GetValue(), s, depth)
	case nil, types.Null:
		return w.NewScalar([]byte("null"))
	case traits.Lister:
		return w.list(elementsOf(value), s, depth)
	case traits.Mapper:
		return w.object(membersOf(value), s, depth)
	case []any:
		return w.list(value, s, depth)
	case map[string]any:
		return w.object(value, s, depth)
	case types.Bool, types.Int, types.Double, types.String, types.Bytes, types.Duration, types.Timestamp:
		return w.scalar(value.(ref.Val).Value(), s)
	}
	return w.scalar(value, s)
}

// takes counts bytes, and reports whether they are within the limit.
func (w *writer) takes(bytes int) bool {
	w.remaining -= bytes
	return w.remaining >= 0
}

func (w *writer) scalar(value any, s *shape.Schema) *tree.Node {
	is := func(formats ...string) bool { return s.Kind == shape.AnyKind || slices.Contains(formats, s.Format) }
	switch value := value.(type) {
	case bool, int64, float64:
		text, err := json.Marshal(value)
		if err != nil || !w.takes(len(text)) { // it is infinite, or not a number
			return nil
		}
		return w.NewScalar(text)
	case string:
		return w.text(value, true)
	case []byte:
		return w.text(base64.StdEncoding.EncodeToString(value), is("byte"))
	case time.Duration:
		return w.text(value.String(), is("duration"))
	case time.Time:
		if s.Format == "date" {
			return w.text(value.UTC().Format(time.DateOnly), true)
		}
		return w.text(value.UTC().Format(time.RFC3339Nano), is("date-time"))
	}
	return nil
}

func (w *writer) text(text string, fits bool) *tree.Node {
	if !fits || !w.takes(len(text)) {
		return nil
	}
	return w.NewText(strings.ToValidUTF8(text, "\ufffd"))
}

func elementsOf(list traits.Lister) (elements []any) {
	for it := list.Iterator(); it.HasNext() == types.True; {
		elements = append(elements, it.Next())
	}
	return elements
}

func (w *writer) list(list []any, s *shape.Schema, depth int) *tree.Node {
	of := s.Items()
	if of == nil || len(list) > w.remaining {
		return nil
	}
	elements := w.Room(len(list))
	for _, element := range list {
		n := w.node(element, of, depth+1)
		if n == nil {
			return nil
		}
		elements = append(elements, n)
	}
	return w.NewList(elements)
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

// object leaves out what the schema has no place for, as an API server would, and members that are no value.
func (w *writer) object(members map[string]any, s *shape.Schema, depth int) *tree.Node {
	if members == nil {
		return nil
	}
	object := w.NewObject()
	for _, name := range slices.Sorted(maps.Keys(members)) {
		of := s.Field(name)
		if of == nil || isNothing(members[name], of) {
			continue
		}
		n := w.node(members[name], of, depth+1)
		if n == nil || !w.takes(len(name)) {
			return nil
		}
		object = w.With(object, name, n)
	}
	return object
}

// isNothing reports whether a member is no value: optional.none(), or a null that its schema does not allow.
func isNothing(member any, s *shape.Schema) bool {
	switch member := member.(type) {
	case *types.Optional:
		return !member.HasValue() || isNothing(member.GetValue(), s)
	case nil, types.Null:
		return !s.IsNullable()
	}
	return false
}
