// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"reflect"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/conversion/shape"
)

// element finds that of a list to which a pointer leads, or none. An index is of one
// without keys: it is the one that has the same keys now, or still is what it became.
// Of format 1 it is the one at the index, if it has nothing else than that had.
func (m *merger) element(list []any, s *shape.Schema, at string, rest []string, value any) any {
	index, isIndex := indexOf(rest[0])
	there := isIndex && index < len(list)
	switch {
	case strings.HasPrefix(rest[0], "["):
		return selected(list, rest[0])
	case m.exact && there:
		return list[index]
	case m.exact || !isIndex:
		return none
	case len(s.Keys()) > 0 && len(rest) == 1:
		return selected(list, selector(value, s.Keys()))
	}
	if _, isDigest := m.entry.images.(string); isDigest {
		return m.digested(list, at, rest[0])
	}
	if m.at.kind == aValue && there && within(list[index], value) {
		return list[index]
	}
	return none
}

// digested finds an element that still is what the entry's element became. It is of
// no other one. The one at its index comes first.
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

// within reports whether a value has nothing else than another one, and so has each
// element of a list.
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

// taken is the place of a field that y cannot have, as x has live data that it would be.
// Common is the shape of values of which that is so, nil for all.
type taken struct {
	pointer string
	common  *common
}

// isTaken reports whether a member that is made would be, or have, a field that is taken.
func (m *merger) isTaken(live map[string]any, segment string, made any) bool {
	for _, t := range m.taken {
		holder, rest := m.root, segments(t.pointer)
		for len(rest) > 1 && follow(holder, rest[:1]) != none {
			holder, rest = follow(holder, rest[:1]), rest[1:]
		}
		if !isSame(holder, live) || rest[0] != segment {
			continue
		}
		if value := follow(made, rest[1:]); value != none && (t.common == nil || t.common.fits(value)) {
			return true
		}
	}
	return false
}

// isSame reports whether a value is the very object.
func isSame(value any, object map[string]any) bool {
	return isObject(value) && reflect.ValueOf(value).Pointer() == reflect.ValueOf(object).Pointer()
}
