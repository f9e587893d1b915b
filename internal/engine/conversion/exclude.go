// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
)

// A rule may exclude elements of a list that the other version cannot have. They are preserved whole, each
// with its index, and are put back at the end of the conversion to their version: at their index, or at the
// end of a shorter list. If the list was absent, that is preserved for the way back. In between, no other
// version has them, so no client can edit or delete them alone. The indexes of all other entries are those of
// the list without them.
//
// An element is excluded, too, if a rule excludes what it would convert to: that would not come back.

// Exclusion selects the elements of a list that the other version cannot have: those without a field.
type Exclusion struct {
	// Without is the path of the field in the element, with the names of the hub. Null counts as missing.
	Without Path `json:"without"`
	// Values are the texts of the field that the other version can have; none if it can have any value.
	Values []string `json:"values,omitempty"`
}

// exclusion is an Exclusion of the source version.
type exclusion struct {
	path   segments
	values []string
}

func newExclusion(of *Exclusion) *exclusion {
	if of == nil {
		return nil
	}
	return &exclusion{of.Without.segments(), of.Values}
}

// excludes reports whether the other version cannot have the element.
func (x *exclusion) excludes(element *node) bool {
	value := element.find(x.path)
	switch {
	case value == nil || value.isNull():
		return true
	case len(x.values) == 0:
		return false
	}
	return !value.isText() || !slices.Contains(x.values, decodeString(value.text))
}

// excluding converts a list of which elements are excluded.
type excluding struct {
	*collection
	parent *pathContext
	// indexes are those that the remaining elements had.
	indexes []int
}

// exclude takes elements out of a list, and preserves them.
func (s *step) exclude(c *collection, list *node, parent *pathContext) *excluding {
	x, index := &excluding{collection: c, parent: parent}, -1
	list.keepOnly(func(element *node) bool {
		if index++; s.spend(scopeUnits) || c.exclusion == nil || !c.exclusion.excludes(element) {
			x.indexes = append(x.indexes, index)
			return true
		}
		c.direction.dropAll(element)
		x.preserve(s, index, s.bytes(element))
		return false
	})
	return x
}

// removeAbsent removes a list of which no element remains from an object, if it was not there in the target
// version.
func (x *excluding) removeAbsent(s *step, n, list *node) {
	if e := s.preserved(x.parent, x.pointer, absenceEntry); e != nil {
		e.state = consumed
		if list.first == nil {
			n.detach(x.path)
		}
	}
}

func (x *excluding) preserve(s *step, index int, element []byte) {
	pointer := s.pointer(x.parent, x.pointer+"/"+strconv.Itoa(index))
	s.preserving = append(s.preserving, entry{pointer: pointer, kind: excludedEntry, value: element})
	s.spendPlace(len(pointer))
}

// convert converts the remaining elements one by one. Each call of one converts the element at an index,
// which has another index in the result if it remains, and reports whether it has become one that the
// target version had: such a one remains.
func (x *excluding) convert(s *step, list *node, one func(element *node, index, targetIndex int) (known bool)) {
	index, length := -1, 0
	list.keepOnly(func(element *node) bool {
		index++
		var original []byte
		if x.targetExclusion != nil {
			original = bytes.Clone(s.bytes(element))
		}
		before := len(s.preserving)
		if known := one(element, index, length); known || x.targetExclusion == nil || !x.targetExclusion.excludes(element) {
			length++
			return true
		}
		s.preserving = s.preserving[:before]
		x.preserve(s, x.indexes[index], x.withoutDropped(s, original))
		return false
	})
}

// withoutDropped returns an element without its dropped fields.
func (x *excluding) withoutDropped(s *step, text []byte) []byte {
	element, err := s.parse(text, x.projection)
	if err != nil || !x.direction.dropAll(element) {
		return text
	}
	return s.bytes(element)
}

// splitExcluded moves the entries of excluded elements out of the others.
func (p *preserved) splitExcluded() {
	p.entries = slices.DeleteFunc(p.entries, func(e entry) bool {
		if e.kind == excludedEntry {
			p.excluded = append(p.excluded, e)
		}
		return e.kind == excludedEntry
	})
}

// putBack puts excluded elements back into the lists of a converted object, and returns those that stay
// preserved: their list does not allow them. They are dropped if the object around their list was deleted,
// which is not so if that object is preserved itself.
func (s *step) putBack(root *node, to *version, d *direction, p preserved) (*node, entries) {
	excluded := p.excluded
	if len(excluded) == 0 {
		return root, nil
	}
	parsed, err := s.parse(s.bytes(root), openAll)
	if err != nil {
		return root, excluded // something that the rules do not look into has a duplicate name
	}
	m := newMerger(s, parsed, d, nil)
	var elements []excludedElement
	var remaining entries
	for i := range excluded {
		if list, index, isElement := excluded[i].inList(); isElement {
			elements = append(elements, excludedElement{excluded[i], list, index})
		} else {
			remaining = append(remaining, excluded[i])
		}
	}
	slices.SortStableFunc(elements, func(a, b excludedElement) int {
		return cmp.Or(bytes.Compare(a.list, b.list), cmp.Compare(a.index, b.index))
	})
	for len(elements) > 0 {
		end := slices.IndexFunc(elements, func(e excludedElement) bool { return !bytes.Equal(e.list, elements[0].list) })
		if end < 0 {
			end = len(elements)
		}
		remaining = append(remaining, s.putBackInto(m, to, elements[0].list, elements[:end], p.entries)...)
		elements = elements[end:]
	}
	return parsed, remaining
}

// inList returns the pointer of the list of an excluded element, and its index.
func (e *entry) inList() (list []byte, index int, isElement bool) {
	end := bytes.LastIndexByte(e.pointer, '/')
	if end < 1 || e.pointer[0] != '/' || !isIndex(e.pointer[end+1:]) {
		return nil, 0, false
	}
	index, err := strconv.Atoi(string(e.pointer[end+1:]))
	return e.pointer[:end], index, err == nil
}

// excludedElement is an entry of an excluded element, with the pointer of its list and its index.
type excludedElement struct {
	entry
	list  []byte
	index int
}

// putBackInto puts elements, which are sorted, back into the list at a pointer.
func (s *step) putBackInto(m *merger, to *version, pointer []byte, elements []excludedElement, preserved entries) (remaining entries) {
	path := splitPointer(m.direction.targetPlaces.ofVersion(pointer))
	keep := func(of ...excludedElement) entries {
		for _, e := range of {
			remaining = append(remaining, e.entry)
		}
		return remaining
	}
	_, schema := locateIn(to.namedShape(), path)
	if schema == nil || !schema.IsList() || schema.Items() == nil || path[0] == "metadata" || path[0] == "status" && s.refusesStatus {
		return keep(elements...)
	}
	holder, name := m.follow(m.root, path[:len(path)-1]), newName(unescapePointer(path[len(path)-1]))
	if holder == nil || holder.kind != object {
		if preserved.hasAncestorOf(pointer) || s.sourceEntries.hasAncestorOf(pointer) {
			return keep(elements...)
		}
		return nil
	}
	list := holder.get(&name)
	if list != nil && list.kind != array {
		return keep(elements...)
	}
	var fitting []*node
	var indexes []int
	for _, e := range elements {
		element, err := s.parse(e.value, openAll)
		if err != nil || !s.fitsElement(schema.Items(), element, e.value) {
			keep(e)
			continue
		}
		fitting, indexes = append(fitting, element), append(indexes, e.index)
	}
	if len(fitting) == 0 {
		return remaining
	}
	if list == nil {
		s.preserving = append(s.preserving, entry{pointer: pointer, kind: absenceEntry})
		list = s.raw([]byte("[]"))
		list.kind, list.open = array, true
		holder.set(&name, list)
		delete(m.members, holder)
	}
	insert(list, fitting, indexes)
	delete(m.lists, list)
	return remaining
}

// insert puts elements into a list, at indexes of the result.
func insert(list *node, elements []*node, indexes []int) {
	next := list.first
	list.first, list.last = nil, nil
	for length := 0; next != nil || len(elements) > 0; length++ {
		if len(elements) > 0 && (next == nil || indexes[0] <= length) {
			list.add(elements[0])
			elements, indexes = elements[1:], indexes[1:]
			continue
		}
		element := next
		next = next.next
		list.add(element)
	}
}

// besides gives excluded elements indexes that no other one has. Those that could not be put back at the
// source version meet those that it has now.
func (e entries) besides(others entries) entries {
	for i := range e {
		isTaken := func() bool {
			return others.find(e[i].pointer, excludedEntry) != nil || slices.ContainsFunc(e[:i], func(other entry) bool { return bytes.Equal(other.pointer, e[i].pointer) })
		}
		for list, index, isElement := e[i].inList(); isElement && isTaken(); {
			index++
			e[i].pointer = append(slices.Clip(list), "/"+strconv.Itoa(index)...)
		}
	}
	return e
}
