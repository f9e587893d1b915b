// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
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
