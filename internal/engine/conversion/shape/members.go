// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"bytes"
	"encoding/json"
	"slices"
)

// members scans the members of an object, the first of which begins at pos.
func (r *scanner) members(s *Schema, pos int) (int, *MisfitError) {
	if r.byte(pos) == '}' {
		return pos + 1, nil
	}
	var seen memberNames
	for {
		name, end, m := r.name(pos)
		if m != nil {
			return pos, m
		}
		if !seen.add(name) {
			return pos, misfit("is there twice").inMember(name)
		}
		member := s.member(name)
		if member == nil {
			return pos, misfit("is not in the schema").inMember(name)
		}
		if end, m = r.value(member, end); m != nil {
			return end, m.inMember(name)
		}
		switch pos = r.skipSpace(end); r.byte(pos) {
		case ',':
			pos = r.skipSpace(pos + 1)
		case '}':
			return pos + 1, nil
		default:
			return pos, misfit(notJSON)
		}
	}
}

// member is Field for a name as bytes.
func (s *Schema) member(name []byte) *Schema {
	if property, found := s.properties[string(name)]; found {
		return property
	}
	switch {
	case s.additional != nil:
		return s.additional
	case s.preserve && !s.closed:
		return anything
	}
	return nil
}

// name reads the name of a member, and returns it with the start of the value.
func (r *scanner) name(pos int) (name []byte, end int, m *MisfitError) {
	if r.byte(pos) != '"' {
		return nil, pos, misfit(notJSON)
	}
	if end, m = r.textEnd(pos); m != nil {
		return nil, pos, m
	}
	quoted := r.src[pos:end]
	if end = r.skipSpace(end); r.byte(end) != ':' {
		return nil, pos, misfit(notJSON)
	}
	return unquoted(quoted), r.skipSpace(end + 1), nil
}

// unquoted returns the text of a string. Escapes in names are rare.
func unquoted(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	var text string
	if json.Unmarshal(quoted, &text) != nil {
		return quoted // cannot happen: the scan accepted the text
	}
	return []byte(text)
}

// memberNames is a set of names. It compares a few names one by one, and is a map for many.
type memberNames struct {
	few  [8][]byte
	len  int
	many map[string]struct{}
}

// add returns false if the set already contains the name.
func (n *memberNames) add(name []byte) bool {
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
