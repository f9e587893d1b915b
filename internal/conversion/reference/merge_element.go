// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"reflect"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/conversion/shape"
)

// element returns the element of a list at a segment, or none. An index identifies an element
// without keys: it matches the element that has the same keys now, or whose digest is the entry's
// image.
func (m *merger) element(list []any, s *shape.Schema, at string, rest []string, value any) any {
	index, isIndex := indexOf(rest[0])
	there := isIndex && index < len(list)
	switch {
	case strings.HasPrefix(rest[0], "["):
		return selectElement(list, rest[0])
	case m.exact && there:
		return list[index]
	case m.exact || !isIndex:
		return none
	case len(s.Keys()) > 0 && len(rest) == 1:
		return selectElement(list, selector(value, s.Keys()))
	}
	if _, isDigest := m.entry.images.(string); isDigest {
		return m.digested(list, at, rest[0])
	}
	return none
}

// digested returns the element whose digest is the entry's image, and that no other entry has. The
// element at the own index takes precedence.
func (m *merger) digested(list []any, at, index string) any {
	taken := map[int]bool{}
	for pointer, i := range m.became {
		if pointer == at+"/"+index {
			return list[i]
		}
		if strings.HasPrefix(pointer, at+"/") {
			taken[i] = true
		}
	}
	own, _ := indexOf(index)
	for i := range list {
		if own < len(list) && !taken[own] && digest(list[own]) == m.entry.images {
			i = own
		}
		if !taken[i] && digest(list[i]) == m.entry.images {
			m.became[at+"/"+index] = i
			return list[i]
		}
	}
	return none
}

// within reports whether a value is part of another: it has no other members, and neither have the
// elements of lists.
func within(value, other any) bool {
	if isList(value) && isList(other) {
		return slices.EqualFunc(value.([]any), other.([]any), within)
	}
	members, isObject := value.(map[string]any)
	others, areObjects := other.(map[string]any)
	if !isObject || !areObjects {
		return Equal(value, other)
	}
	for name := range members {
		if same, found := others[name]; !found || !within(members[name], same) {
			return false
		}
	}
	return true
}

// taken is a field that y cannot have because x has live data for it. Common is the shape of the
// values that y cannot have, nil for all values.
type taken struct {
	pointer string
	common  *common
}

// isTaken reports whether a new member would be, or contain, a taken field.
func (m *merger) isTaken(live map[string]any, segment string, made any) bool {
	for _, t := range m.taken {
		holder, rest := m.root, segments(m.direction.yPlaces.reversed().pointer(t.pointer))
		for len(rest) > 1 && follow(holder, rest[:1]) != none {
			holder, rest = follow(holder, rest[:1]), rest[1:]
		}
		if !isSameObject(holder, live) || rest[0] != segment {
			continue
		}
		if value := follow(made, rest[1:]); value != none && (t.common == nil || t.common.fits(value)) {
			return true
		}
	}
	return false
}

// isSameObject reports whether two values are the same map.
func isSameObject(value any, object map[string]any) bool {
	return isObject(value) && reflect.ValueOf(value).Pointer() == reflect.ValueOf(object).Pointer()
}
