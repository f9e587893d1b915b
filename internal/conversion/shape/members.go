// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"bytes"
	"encoding/json"
	"slices"
)

// members looks at the members of an object, which begin at a place.
func (r *scanner) members(s *Schema, at int) (int, *MisfitError) {
	if r.byte(at) == '}' {
		return at + 1, nil
	}
	var seen names
	for {
		name, end, m := r.name(at)
		if m != nil {
			return at, m
		}
		if !seen.add(name) {
			return at, misfit("is there twice").inMember(name)
		}
		member := s.member(name)
		if member == nil {
			return at, misfit("is not in the schema").inMember(name)
		}
		if end, m = r.value(member, end); m != nil {
			return end, m.inMember(name)
		}
		switch at = r.space(end); r.byte(at) {
		case ',':
			at = r.space(at + 1)
		case '}':
			return at + 1, nil
		default:
			return at, misfit(notJSON)
		}
	}
}

// member is Field of a name as bytes.
func (s *Schema) member(name []byte) *Schema {
	if property, found := s.properties[string(name)]; found {
		return property
	}
	switch {
	case s.additional != nil:
		return s.additional
	case s.preserve && !s.node.Closed:
		return anything
	}
	return nil
}

// name reads the name of a member, and returns where its value begins.
func (r *scanner) name(at int) (name []byte, end int, m *MisfitError) {
	if r.byte(at) != '"' {
		return nil, at, misfit(notJSON)
	}
	if end, m = r.text(at); m != nil {
		return nil, at, m
	}
	quoted := r.src[at:end]
	if end = r.space(end); r.byte(end) != ':' {
		return nil, at, misfit(notJSON)
	}
	return unquoted(quoted), r.space(end + 1), nil
}

// unquoted is what a string says. Escapes in names are rare.
func unquoted(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	var text string
	if json.Unmarshal(quoted, &text) != nil {
		return quoted // it was just read, so this does not happen
	}
	return []byte(text)
}

// names are the members of an object so far. A few are compared one by one.
type names struct {
	few  [8][]byte
	len  int
	many map[string]struct{}
}

// add reports false where a name is there.
func (n *names) add(name []byte) bool {
	if n.many != nil {
		if _, found := n.many[string(name)]; found {
			return false
		}
		n.many[string(name)] = struct{}{}
		return true
	}
	if slices.ContainsFunc(n.few[:n.len], func(other []byte) bool { return bytes.Equal(other, name) }) {
		return false
	}
	if n.len < len(n.few) {
		n.few[n.len] = name
		n.len++
		return true
	}
	n.many = make(map[string]struct{}, 2*len(n.few))
	for _, other := range n.few {
		n.many[string(other)] = struct{}{}
	}
	n.many[string(name)] = struct{}{}
	return true
}
