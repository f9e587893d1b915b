// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"slices"
	"strconv"
	"strings"
)

// follow follows the segments of a pointer, nil where they lead nowhere.
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

// member returns the member that a segment of a pointer names, nil where there is none.
func (m *merger) member(n *node, segment string) *node {
	known := m.members[n]
	if known == nil {
		known = map[string]*node{}
		for member := n.first; member != nil; member = member.next {
			known[escapePointer(member.label())] = member
		}
		m.members[n] = known
	}
	return known[segment]
}

// selected returns the only element of a list that has the keys of a selector.
func (m *merger) selected(list *node, keys segments, selector string) *node {
	known := m.selectors[list]
	if known == nil {
		known = map[string]*node{}
		for i := range keys {
			m.keys[escapePointer(keys[i].text)] = true
		}
		for element := list.first; element != nil && len(keys) > 0; element = element.next {
			if m.h.spend(scopeUnits) {
				break
			}
			if element.kind != object {
				continue
			}
			of := string(appendSelector(nil, element, keys))
			if _, twice := known[of]; twice {
				element = &node{next: element.next} // neither can be told from the other
			}
			known[of] = element
		}
		m.selectors[list] = known
	}
	if found := known[selector]; found != nil && found.kind == object {
		return found
	}
	return nil
}

// digested finds an element of a list that still is what the entry's element became,
// the same for all entries of that element: the one at its index, or else the first.
func (m *merger) digested(list *node, segment string) *node {
	known := m.digests[list]
	if known == nil {
		known = &digests{indexes: map[string][]int{}, taken: map[int]bool{}, of: map[string]int{}}
		index := 0
		for element := list.first; element != nil; element = element.next {
			of := string(m.h.digest(element))
			known.indexes[of] = append(known.indexes[of], index)
			index++
		}
		m.digests[list] = known
	}
	index, found := known.take(string(m.digest), segment)
	if !found {
		return nil
	}
	return m.elementAt(list, strconv.Itoa(index))
}

// digests are the elements of a list by what they are.
type digests struct {
	// indexes are sorted, by digests.
	indexes map[string][]int
	taken   map[int]bool
	// of has the index that was taken for an entry, by digest and segment.
	of map[string]int
}

func (d *digests) take(digest, segment string) (index int, found bool) {
	if index, found = d.of[digest+segment]; found {
		return index, true
	}
	alike := d.indexes[digest]
	own, err := strconv.Atoi(segment)
	if _, found = slices.BinarySearch(alike, own); err != nil || !found || d.taken[own] {
		for len(alike) > 0 && d.taken[alike[0]] {
			alike = alike[1:]
		}
		if d.indexes[digest] = alike; len(alike) == 0 {
			return 0, false
		}
		own = alike[0]
	}
	d.taken[own], d.of[digest+segment] = true, own
	return own, true
}

// elementAt is the element of a list at an index, nil where there is none.
func (m *merger) elementAt(list *node, segment string) *node {
	if !isIndex([]byte(segment)) {
		return nil
	}
	known, found := m.lists[list]
	if !found {
		for element := list.first; element != nil; element = element.next {
			known = append(known, element)
		}
		m.lists[list] = known
	}
	if index, err := strconv.Atoi(segment); err == nil && index < len(known) {
		return known[index]
	}
	return nil
}

// selectorKeys are the names of the keys in [name="http",protocol="TCP"]. Values are
// JSON, so that a comma between two keys stands outside quotes and brackets.
func selectorKeys(selector string) segments {
	inner, closed := strings.CutSuffix(strings.TrimPrefix(selector, "["), "]")
	if !closed {
		return nil
	}
	var keys Path
	quoted, depth, start := false, 0, 0
	for i := 0; i <= len(inner); i++ {
		switch {
		case i == len(inner), inner[i] == ',' && !quoted && depth == 0:
			name, _, found := strings.Cut(inner[start:i], "=")
			if !found {
				return nil
			}
			keys, start = append(keys, unescapePointer(name)), i+1
		case inner[i] == '\\' && quoted:
			i++
		case inner[i] == '"':
			quoted = !quoted
		case quoted:
		case inner[i] == '{', inner[i] == '[':
			depth++
		case inner[i] == '}', inner[i] == ']':
			depth--
		}
	}
	return keys.segments()
}

// equal reports whether two paths have the same names.
func (s segments) equal(other segments) bool { return len(s) == len(other) && s.has(other) }

// splitPointer are the segments of a pointer, escaped as they are in it.
func splitPointer(pointer []byte) []string { return strings.Split(string(pointer[1:]), "/") }

// takenField is a field that is absent at one version, as that cannot have the live data
// that the field, or those that a rule computes it from, has at the other. An entry in
// its place would win over that data on the way back.
type takenField struct {
	// pointer is its place, and path the rest of that below an object that is there.
	pointer []byte
	path    []string
	// common is the shape of values that are those of the other version, nil for all.
	common *Common
}

func (h *step) noteTaken(pointer []byte, common *Common) {
	if h.restoring {
		h.taken = append(h.taken, takenField{pointer: pointer, common: common})
	}
}

// noteTaken notes the fields of an object that are taken.
func (m *merger) noteTaken() {
	m.taken = map[*node][]takenField{}
	for _, f := range m.h.taken {
		f.path = splitPointer(f.pointer)
		m.noteBelow(m.root, f)
	}
}

// noteBelow notes a field at the innermost object around it.
func (m *merger) noteBelow(n *node, f takenField) {
	for len(f.path) > 1 {
		next := m.follow(n, f.path[:1])
		if next == nil {
			break
		}
		n, f.path = next, f.path[1:]
	}
	if n.kind == object {
		m.taken[n] = append(m.taken[n], f)
	}
}

// takes reports whether a member that is made would be, or have, a field that is taken.
func (m *merger) takes(n *node, segment string, made *node) bool {
	for _, f := range m.taken[n] {
		if f.path[0] != segment {
			continue
		}
		value := m.follow(made, f.path[1:])
		if value != nil && (f.common == nil || f.common.fits(&m.h.arena, m.h.bytes(value))) {
			return true
		}
	}
	return false
}

// noteMade notes the fields that are taken in a member that was made.
func (m *merger) noteMade(n *node, segment string, made *node) {
	for _, f := range m.taken[n] {
		if f.path[0] == segment && len(f.path) > 1 {
			f.path = f.path[1:]
			m.noteBelow(made, f)
		}
	}
}
