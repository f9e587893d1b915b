// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"cmp"
	"slices"
)

// indexing is an Index, with its key prepared.
type indexing struct {
	*Index
	key name
}

// objects looks into the objects of a list or map.
var objects = &look{each: one}

// convert makes a list a map, or a map a list that is sorted by its keys. Where
// the other side cannot have the same objects there is no image.
func (x *indexing) convert(h *step, value *node, toHub bool) *node {
	held, err := h.parse(h.bytes(value), objects)
	switch {
	case err != nil:
		return nil
	case toHub == x.Hub:
		return x.list(h, held)
	}
	return x.toMap(h, held)
}

// toMap takes the key out of every object of a list.
func (x *indexing) toMap(h *step, list *node) *node {
	if list.kind != array {
		return nil
	}
	made, count := h.newObject(), 0
	for element := list.first; element != nil; {
		next := element.next
		key := x.keyOf(h, element)
		if key == nil {
			return nil
		}
		element.remove(&x.key)
		element.key, element.escaped, element.mark = key, !isPlain(key), markOf(key)
		made.add(element)
		element, count = next, count+1
	}
	p := parser{arena: &h.arena}
	if p.unique(made, count, 0) != nil {
		return nil
	}
	return made
}

// keyOf is the key of an object of the list as the name of a member, with its
// quotes; nil where it has none.
func (x *indexing) keyOf(h *step, element *node) []byte {
	if !element.isObject() {
		return nil
	}
	key := element.get(&x.key)
	switch {
	case key == nil:
		return nil
	case !x.Integer && key.isText():
		return h.quote(h.decode(key.text)).text
	case x.Integer:
		if isInteger(key.text) {
			return h.quote(key.text).text
		}
	}
	return nil
}

// list puts the key into every object of a map, in front.
func (x *indexing) list(h *step, held *node) *node {
	if held.kind != object {
		return nil
	}
	elements := h.membersOf(held)
	sorted := h.keyed.take(len(elements))
	for i, m := range elements {
		sorted[i] = keyed{element: m, text: h.nameOf(m)}
		key := h.keyValue(sorted[i].text, x.Integer)
		if key == nil || !m.isObject() || m.get(&x.key) != nil {
			return nil
		}
		key.key, key.mark, key.next = x.key.quoted, x.key.mark, m.first
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
	return h.listOf(elements)
}

// keyed is an element and what it is sorted by, which is read once: integers go by
// size, and strings by their bytes.
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

// keyValue is the name of a member as a value.
func (h *step) keyValue(name []byte, integer bool) *node {
	if !integer {
		return h.quote(name)
	}
	if !isInteger(name) {
		return nil
	}
	return h.raw(name)
}

// orderName is the one name in an order as format 1 preserved it: {"order":["b","a"]}.
var orderName = newName("order")

// order writes the keys of a list as they follow each other, as a list.
func (x *indexing) order(h *step, list []byte) []byte {
	held, err := h.parse(list, objects)
	if err != nil {
		return list // cannot be: it has an image
	}
	keys := h.membersOf(held)
	for i, element := range keys {
		keys[i] = h.raw(element.get(&x.key).text)
	}
	return h.bytes(h.listOf(keys))
}

// reorder makes the elements of a list, whose keys are in front, follow each
// other as their keys do in what was preserved. New ones stand behind them.
func (x *indexing) reorder(h *step, list *node, order []byte) *node {
	keys, err := h.parse(order, elements)
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
	elements := h.membersOf(list)
	sorted := h.keyed.take(len(elements))
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
	return h.listOf(elements)
}

// membersOf are the members of an object or the elements of a list.
func (h *step) membersOf(n *node) []*node {
	count := 0
	for m := n.first; m != nil; m = m.next {
		count++
	}
	members := h.lists.take(count)[:0]
	for m := n.first; m != nil; m = m.next {
		members = append(members, m)
	}
	return members
}

// listOf makes a list of values that are in no other.
func (h *step) listOf(elements []*node) *node {
	list := h.node()
	list.kind, list.open = array, true
	for _, element := range elements {
		list.add(element)
	}
	return list
}
