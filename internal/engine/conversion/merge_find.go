// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"slices"
	"strconv"
	"strings"
)

// follow returns the node at the path, whose segments are those of a pointer; nil if there is
// none.
func (m *merger) follow(n *node, path []string) *node {
	for _, segment := range path {
		switch {
		case n == nil:
			return nil
		case n.kind == object:
			n = m.member(n, segment)
		case n.kind == array && strings.HasPrefix(segment, "["):
			n = m.selected(n, selectorKeys(segment), segment)
		case n.kind == array:
			n = m.elementAt(n, segment)
		default:
			return nil
		}
	}
	return n
}

// member returns the member with the name, a segment of a pointer; nil if there is none.
func (m *merger) member(n *node, segment string) *node {
	cache := m.members[n]
	if cache == nil {
		cache = map[string]*node{}
		for member := n.first; member != nil; member = member.next {
			cache[escapePointer(member.decodedName())] = member
		}
		m.members[n] = cache
	}
	return cache[segment]
}

// selected returns the element of a list with the keys of the selector, nil if there is none or
// more than one.
func (m *merger) selected(list *node, keys segments, selector string) *node {
	cache := m.selectors[list]
	if cache == nil {
		cache = map[string]*node{}
		for i := range keys {
			m.keys[escapePointer(keys[i].text)] = true
		}
		for element := list.first; element != nil && len(keys) > 0; element = element.next {
			if m.step.spend(scopeUnits) {
				break
			}
			if element.kind != object {
				continue
			}
			of := string(appendSelector(nil, element, keys))
			if _, twice := cache[of]; twice {
				element = &node{next: element.next} // ambiguous
			}
			cache[of] = element
		}
		m.selectors[list] = cache
	}
	if found := cache[selector]; found != nil && found.kind == object {
		return found
	}
	return nil
}

// digested returns the element of a list that is still the result of the preserved one, the same
// for all entries of that element: the one at its index, or else the first one.
func (m *merger) digested(list *node, segment string) *node {
	cache := m.digests[list]
	if cache == nil {
		cache = &digests{indexes: map[string][]int{}, taken: map[int]bool{}, of: map[string]int{}}
		index := 0
		for element := list.first; element != nil; element = element.next {
			of := string(m.step.digest(element, nil))
			cache.indexes[of] = append(cache.indexes[of], index)
			index++
		}
		m.digests[list] = cache
	}
	index, found := cache.take(string(m.digest), segment)
	if !found {
		return nil
	}
	return m.elementAt(list, strconv.Itoa(index))
}

// digests are the elements of a list by digest.
type digests struct {
	// indexes are sorted.
	indexes map[string][]int
	taken   map[int]bool
	// of has the index that was taken for an entry, by digest and segment.
	of map[string]int
}

func (d *digests) take(digest, segment string) (index int, found bool) {
	if index, found = d.of[digest+segment]; found {
		return index, true
	}
	candidates := d.indexes[digest]
	own, err := strconv.Atoi(segment)
	if _, found = slices.BinarySearch(candidates, own); err != nil || !found || d.taken[own] {
		for len(candidates) > 0 && d.taken[candidates[0]] {
			candidates = candidates[1:]
		}
		if d.indexes[digest] = candidates; len(candidates) == 0 {
			return 0, false
		}
		own = candidates[0]
	}
	d.taken[own], d.of[digest+segment] = true, own
	return own, true
}

// elementAt returns the element of a list at an index, nil if there is none.
func (m *merger) elementAt(list *node, segment string) *node {
	if !isIndex([]byte(segment)) {
		return nil
	}
	cache, found := m.lists[list]
	if !found {
		for element := list.first; element != nil; element = element.next {
			cache = append(cache, element)
		}
		m.lists[list] = cache
	}
	if index, err := strconv.Atoi(segment); err == nil && index < len(cache) {
		return cache[index]
	}
	return nil
}

// selectorKeys returns the names of the keys of a selector such as [name="http",protocol="TCP"].
func selectorKeys(selector string) segments {
	inner, closed := strings.CutSuffix(strings.TrimPrefix(selector, "["), "]")
	if !closed {
		return nil
	}
	var keys Path
	for _, part := range splitSelector(inner) {
		name, _, found := strings.Cut(part, "=")
		if !found {
			return nil
		}
		keys = append(keys, unescapePointer(name))
	}
	return keys.segments()
}

// equal reports whether two paths are the same.
func (s segments) equal(other segments) bool { return len(s) == len(other) && s.hasPrefix(other) }

// splitPointer returns the segments of a pointer, still escaped.
func splitPointer(pointer []byte) []string { return strings.Split(string(pointer[1:]), "/") }

// blockedField is a field that is absent in one version because that version does not allow its
// value in the other one. An entry in its place would overwrite that value on the way back.
type blockedField struct {
	// pointer leads to the field; path is the rest of it below an existing object.
	pointer []byte
	path    []string
	// common is the shape of the values that are blocked, nil for all values.
	common *Common
}

func (s *step) noteBlocked(pointer []byte, common *Common) {
	if s.restoring {
		s.blocked = append(s.blocked, blockedField{pointer: pointer, common: common})
	}
}

// noteBlocked records the blocked fields of an object.
func (m *merger) noteBlocked() {
	m.blocked = map[*node][]blockedField{}
	for _, f := range m.step.blocked {
		f.path = splitPointer(m.direction.targetPlaces.ofVersion(f.pointer))
		m.noteBlockedBelow(m.root, f)
	}
}

// noteBlockedBelow records a field at the innermost existing object above it.
func (m *merger) noteBlockedBelow(n *node, f blockedField) {
	for len(f.path) > 1 {
		next := m.follow(n, f.path[:1])
		if next == nil {
			break
		}
		n, f.path = next, f.path[1:]
	}
	if n.kind == object {
		m.blocked[n] = append(m.blocked[n], f)
	}
}

// isBlocked reports whether a new member is, or contains, a blocked field.
func (m *merger) isBlocked(n *node, segment string, made *node) bool {
	for _, f := range m.blocked[n] {
		if f.path[0] != segment {
			continue
		}
		value := m.follow(made, f.path[1:])
		if value != nil && (f.common == nil || f.common.fits(&m.step.arena, m.step.bytes(value))) {
			return true
		}
	}
	return false
}

// moveBlocked records the blocked fields that are inside of a new member.
func (m *merger) moveBlocked(n *node, segment string, made *node) {
	for _, f := range m.blocked[n] {
		if f.path[0] == segment && len(f.path) > 1 {
			f.path = f.path[1:]
			m.noteBlockedBelow(made, f)
		}
	}
}
