// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import "slices"

// kind of a JSON value.
type kind byte

const (
	scalar kind = iota
	object
	array
)

// node is a JSON value. One that the plan does not look into is its bytes;
// others have members or elements, and forget theirs when they are changed.
type node struct {
	kind kind
	// raw is the text of a value that was not looked into.
	raw []byte
	// src is the text of a value that was looked into, as it was parsed.
	src      []byte
	members  []member
	elements []*node
}

// member of an object, in the order of the text.
type member struct {
	// key as written, with its quotes.
	key []byte
	// name is the key decoded.
	name  string
	value *node
}

func newObject() *node { return &node{kind: object} }

func rawNode(raw []byte) *node { return &node{raw: raw} }

// isExpanded reports whether the plan has looked into the value.
func (n *node) isExpanded() bool { return n.raw == nil }

// get returns a member, nil where there is none or the value is no object.
func (n *node) get(name string) *node {
	for i := range n.members {
		if n.members[i].name == name {
			return n.members[i].value
		}
	}
	return nil
}

// find follows a path of names.
func (n *node) find(path Path) *node {
	for _, name := range path {
		if n == nil {
			return nil
		}
		n = n.get(name)
	}
	return n
}

// holds reports whether there is an object at a path that can get new members.
func (n *node) holds(path Path) bool {
	found := n.find(path)
	return found != nil && found.kind == object && found.isExpanded()
}

// set replaces a member, or adds one at the end.
func (n *node) set(name string, value *node) {
	for i := range n.members {
		if n.members[i].name == name {
			n.members[i].value = value
			return
		}
	}
	n.members = append(n.members, member{key: appendString(nil, name), name: name, value: value})
}

// remove takes a member away.
func (n *node) remove(name string) {
	n.members = slices.DeleteFunc(n.members, func(m member) bool { return m.name == name })
}

// detach takes the value at a path away and returns it, nil where there is none.
func (n *node) detach(path Path) *node {
	parent := n.find(path[:len(path)-1])
	if parent == nil {
		return nil
	}
	last := path[len(path)-1]
	value := parent.get(last)
	if value != nil {
		parent.remove(last)
	}
	return value
}

// put sets the value at a path and makes the objects on the way. A value of
// another kind that is in the way is replaced.
func (n *node) put(path Path, value *node) {
	for _, name := range path[:len(path)-1] {
		next := n.get(name)
		if next == nil || next.kind != object || !next.isExpanded() {
			next = newObject()
			n.set(name, next)
		}
		n = next
	}
	n.set(path[len(path)-1], value)
}

// append writes the value as JSON.
func (n *node) append(dst []byte) []byte {
	switch {
	case n.raw != nil:
		return append(dst, n.raw...)
	case n.kind == array:
		dst = append(dst, '[')
		for i, element := range n.elements {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = element.append(dst)
		}
		return append(dst, ']')
	}
	dst = append(dst, '{')
	for i := range n.members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, n.members[i].key...)
		dst = append(dst, ':')
		dst = n.members[i].value.append(dst)
	}
	return append(dst, '}')
}
