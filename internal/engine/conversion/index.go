// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"cmp"
	"slices"
)

// indexing is an Index with its key prepared.
type indexing struct {
	*Index
	key, value name
}

// openElementMembers opens the objects of a list or map.
var openElementMembers = &projection{each: openMembers}

// convert turns a list into a map, or a map into a list sorted by key. It returns nil if the other
// side cannot express the value.
func (x *indexing) convert(s *step, value *node, toHub bool) *node {
	held, err := s.parse(s.bytes(value), openElementMembers)
	switch {
	case err != nil:
		return nil
	case toHub == x.Hub:
		return x.list(s, held)
	}
	return x.toMap(s, held)
}

// toMap moves the key of every object of a list into the name of a member. The member is the rest of
// the object, or the value in it.
func (x *indexing) toMap(s *step, list *node) *node {
	if list.kind != array {
		return nil
	}
	made, count := s.newObject(), 0
	for element := list.first; element != nil; {
		next := element.next
		key := x.keyOf(s, element)
		if key == nil {
			return nil
		}
		member := element
		if x.Value != "" {
			member = element.only(&x.value)
		} else {
			element.remove(&x.key)
		}
		if member == nil {
			return nil
		}
		member.key, member.escaped, member.fingerprint, member.untouched = key, !isPlain(key), fingerprintOf(key), false
		made.add(member)
		element, count = next, count+1
	}
	p := parser{arena: &s.arena}
	if p.unique(made, count, 0) != nil {
		return nil
	}
	return made
}

// keyOf returns the key of an object of the list as a member's name, with quotes; nil if it has
// none.
func (x *indexing) keyOf(s *step, element *node) []byte {
	if !element.isObject() {
		return nil
	}
	key := element.get(&x.key)
	switch {
	case key == nil:
		return nil
	case !x.Integer && key.isText():
		return s.quote(s.decode(key.text)).text
	case x.Integer:
		if isInteger(key.text) {
			return s.quote(key.text).text
		}
	}
	return nil
}

// list puts the key into every object of a map, as its first member.
func (x *indexing) list(s *step, held *node) *node {
	if held.kind != object {
		return nil
	}
	elements := s.membersOf(held)
	sorted := s.keyed.take(len(elements))
	for i, m := range elements {
		sorted[i] = keyed{element: m, text: s.nameOf(m)}
		key := s.keyValue(sorted[i].text, x.Integer)
		if x.Value != "" && key != nil && !m.isNull() {
			m = s.enclosed(&x.value, m)
			sorted[i].element = m
		}
		if key == nil || !m.isObject() || m.get(&x.key) != nil {
			return nil
		}
		key.key, key.fingerprint, key.next = x.key.quoted, x.key.fingerprint, m.first
		if m.first == nil {
			m.last = key
		}
		m.first = key
		if x.Integer {
			sorted[i].number, _ = readInteger(sorted[i].text)
			sorted[i].text = nil
		}
	}
	slices.SortStableFunc(sorted, keyed.compare)
	for i := range sorted {
		elements[i] = sorted[i].element
	}
	return s.listOf(elements)
}

// keyed is an element with its sort key: integers sort by size, strings by bytes.
type keyed struct {
	element *node
	number  int64
	text    []byte
}

func (k keyed) compare(other keyed) int {
	if k.number != other.number {
		return cmp.Compare(k.number, other.number)
	}
	return bytes.Compare(k.text, other.text)
}

// keyValue returns the name of a member as a value.
func (s *step) keyValue(name []byte, integer bool) *node {
	if !integer {
		return s.quote(name)
	}
	if !isInteger(name) {
		return nil
	}
	return s.raw(name)
}

// order returns the keys of a list in their order, as a JSON list. It returns nil if the map has not
// all fields of the objects.
func (x *indexing) order(s *step, list []byte) []byte {
	held, err := s.parse(list, openElementMembers)
	if err != nil {
		return list // cannot happen: the list has an image
	}
	keys := s.membersOf(held)
	for i, element := range keys {
		if x.Value != "" && len(s.membersOf(element)) != 2 {
			return nil
		}
		keys[i] = s.raw(element.get(&x.key).text)
	}
	return s.bytes(s.listOf(keys))
}

// patch gives the objects of a list the fields of the preserved objects with the same keys, and
// their order. New objects come last.
func (x *indexing) patch(s *step, list *node, preserved []byte) *node {
	known, err := s.parse(preserved, openElementMembers)
	if err != nil || known.kind != array {
		return list
	}
	current := map[string]*node{}
	for element := list.first; element != nil; element = element.next {
		current[canonical(element.get(&x.key))] = element
	}
	elements := s.membersOf(list)
	patched := s.lists.take(len(elements))[:0]
	for element := known.first; element != nil; {
		next := element.next
		if key := element.only(&x.key); key != nil {
			if same := current[canonical(key)]; same != nil {
				delete(current, canonical(key))
				element.set(&x.value, same.get(&x.value))
				patched = append(patched, element)
			}
		}
		element = next
	}
	for _, element := range elements {
		if current[canonical(element.get(&x.key))] != nil {
			patched = append(patched, element)
		}
	}
	return s.listOf(patched)
}

// reorder sorts the elements of a list, whose first member is the key, into the preserved order.
// New elements come last.
func (x *indexing) reorder(s *step, list *node, order []byte) *node {
	keys, err := s.parse(order, openElements)
	if err != nil || keys.kind != array {
		return list
	}
	ranks := map[string]int64{}
	for key := keys.first; key != nil; key = key.next {
		text := canonical(key)
		if _, twice := ranks[text]; !twice {
			ranks[text] = int64(len(ranks))
		}
	}
	elements := s.membersOf(list)
	sorted := s.keyed.take(len(elements))
	for i, element := range elements {
		sorted[i] = keyed{element: element, number: int64(len(ranks))}
		if rank, known := ranks[canonical(element.first)]; known {
			sorted[i].number = rank
		}
	}
	slices.SortStableFunc(sorted, keyed.compare)
	for i := range sorted {
		elements[i] = sorted[i].element
	}
	return s.listOf(elements)
}

// membersOf returns the members of an object, or the elements of a list.
func (s *step) membersOf(n *node) []*node {
	count := 0
	for m := n.first; m != nil; m = m.next {
		count++
	}
	members := s.lists.take(count)[:0]
	for m := n.first; m != nil; m = m.next {
		members = append(members, m)
	}
	return members
}

// listOf returns a list of values that are in no other list.
func (s *step) listOf(elements []*node) *node {
	list := s.newList()
	for _, element := range elements {
		list.add(element)
	}
	return list
}
