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
func (m *merger) selected(list *node, keys steps, selector string) *node {
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
func selectorKeys(selector string) steps {
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
	return keys.steps()
}

// equal reports whether two paths have the same names.
func (s steps) equal(other steps) bool { return len(s) == len(other) && s.has(other) }

// splitPointer are the segments of a pointer, escaped as they are in it.
func splitPointer(pointer []byte) []string { return strings.Split(string(pointer[1:]), "/") }
