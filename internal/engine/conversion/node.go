// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"slices"
	"strings"
)

// kind is the kind of a JSON value.
type kind byte

const (
	scalar kind = iota
	object
	array
)

func kindOf(text []byte) kind {
	if len(text) > 0 {
		switch text[0] {
		case '{':
			return object
		case '[':
			return array
		}
	}
	return scalar
}

// node is a JSON value. It is only text if the ruleset does not look into it; an open one has
// members or elements. A node is in at most one list of siblings.
type node struct {
	kind kind
	// open is true if the members or elements are nodes of their own.
	open bool
	// escaped is true if the key contains escapes.
	escaped bool
	// untouched is true if the value still follows the key in the original text, up to the
	// capacity of key.
	untouched bool
	// key is the name of a member as it is written, with quotes; fingerprint is that of the name
	// without escapes.
	key         []byte
	fingerprint fingerprint
	// text is the value as it was written. It may be outdated if the node is open.
	text              []byte
	next, first, last *node
}

// isObject reports whether the value is an object that can get members.
func (n *node) isObject() bool { return n.open && n.kind == object }

func (n *node) isNull() bool { return isNull(n.text) }

func isNull(text []byte) bool { return string(text) == "null" }

func (n *node) isText() bool { return isString(n.text) }

// named reports whether a member has the name.
func (n *node) named(name *name) bool { return n.fingerprint == name.fingerprint && n.spells(name) }

// spells reports whether a member with the fingerprint of the name has the name.
func (n *node) spells(name *name) bool {
	if n.escaped {
		return decodeString(n.key) == name.text
	}
	return len(n.key) == len(name.quoted) && (len(n.key) <= fingerprintLen || bytes.Equal(n.key, name.quoted))
}

// decodedName returns the name of a member without escapes.
func (n *node) decodedName() string { return decodeString(n.key) }

// nameOf is decodedName without an allocation.
func (a *arena) nameOf(n *node) []byte {
	if n.escaped {
		return a.decode(n.key)
	}
	return n.key[1 : len(n.key)-1]
}

// get returns a member, nil if there is none or the value is not an open object.
func (n *node) get(name *name) *node {
	for m := n.first; m != nil; m = m.next {
		if m.named(name) {
			return m
		}
	}
	return nil
}

// find returns the value at a path, nil if there is none.
func (n *node) find(path segments) *node {
	for i := range path {
		if n == nil {
			return nil
		}
		n = n.get(&path[i])
	}
	return n
}

// hasObject reports whether the value at a path is an object that can get members.
func (n *node) hasObject(path segments) bool {
	found := n.find(path)
	return found != nil && found.isObject()
}

// add appends a member or an element.
func (n *node) add(child *node) {
	child.next = nil
	if n.first == nil {
		n.first = child
	} else {
		n.last.next = child
	}
	n.last = child
}

// set replaces a member in its place and returns the previous value, or appends a new member.
func (n *node) set(name *name, value *node) (old *node) {
	value.key, value.escaped, value.fingerprint, value.untouched = name.quoted, false, name.fingerprint, false
	before, old := n.lookup(name)
	if old == nil {
		n.add(value)
		return nil
	}
	value.key, value.escaped, value.next = old.key, old.escaped, old.next
	n.link(before, value)
	if n.last == old {
		n.last = value
	}
	return old
}

// remove removes and returns a member, nil if there is none.
func (n *node) remove(name *name) *node {
	before, old := n.lookup(name)
	if old == nil {
		return nil
	}
	n.link(before, old.next)
	if n.last == old {
		n.last = before
	}
	old.next = nil
	return old
}

// link makes next the successor of a child, or the first child if that is nil.
func (n *node) link(before, next *node) {
	if before == nil {
		n.first = next
		return
	}
	before.next = next
}

// lookup returns a member and its predecessor.
func (n *node) lookup(name *name) (before, found *node) {
	for m := n.first; m != nil; before, m = m, m.next {
		if m.named(name) {
			return before, m
		}
	}
	return before, nil
}

// keepOnly removes the members that do not fit. During a call of fits, the member and all later
// ones are still in the list.
func (n *node) keepOnly(fits func(*node) bool) {
	var before *node
	for m := n.first; m != nil; {
		next := m.next
		if fits(m) {
			before = m
		} else {
			n.link(before, next)
			m.next = nil
		}
		m = next
	}
	n.last = before
}

// detach removes and returns the value at a path, nil if there is none.
func (n *node) detach(path segments) *node {
	parent, name := path.split()
	held := n.find(parent)
	if held == nil {
		return nil
	}
	return held.remove(name)
}

// append appends the value as JSON.
func (n *node) append(dst []byte) []byte {
	switch {
	case !n.open:
		return append(dst, n.text...)
	case n.kind == array:
		dst = append(dst, '[')
		for element := n.first; element != nil; element = element.next {
			if element != n.first {
				dst = append(dst, ',')
			}
			dst = element.append(dst)
		}
		return append(dst, ']')
	}
	dst = append(dst, '{')
	for m := n.first; m != nil; m = m.next {
		if m != n.first {
			dst = append(dst, ',')
		}
		if m.untouched && !m.open {
			dst = append(dst, m.key[:cap(m.key)]...)
			continue
		}
		dst = append(append(dst, m.key...), ':')
		if m.open {
			dst = m.append(dst)
		} else {
			dst = append(dst, m.text...)
		}
	}
	return append(dst, '}')
}

// openAll opens all of a value.
var openAll = func() *projection {
	all := &projection{}
	all.each = all
	return all
}()

// Canonical returns a normal form of a JSON text, the same for equal values: the order of members,
// white space and escapes do not matter. Numbers are compared by their text. It fails for text
// that is not valid, or has a duplicate name in an object.
func Canonical(text []byte) (string, error) {
	value, err := parse(text, openAll)
	if err != nil {
		return "", err
	}
	return canonical(value), nil
}

// canonical is Canonical for a parsed value.
func canonical(n *node) string { return new(arena).canonical(n) }

// canonical uses the memory of the arena.
func (a *arena) canonical(n *node) string {
	if n.isText() {
		return string(appendQuoted(nil, decodeString(n.text)))
	}
	if n.kind == scalar {
		return string(n.text)
	}
	all, err := a.parse(n.append(nil), openAll)
	if err != nil {
		return string(n.append(nil)) // it has a duplicate name: compare its bytes
	}
	all.sort()
	return string(all.append(nil))
}

// sort sorts all members by the bytes of their names, and normalises escapes.
func (n *node) sort() {
	if n.isText() {
		n.text = appendQuoted(nil, decodeString(n.text))
	}
	var children []*node
	for child := n.first; child != nil; child = child.next {
		child.sort()
		children = append(children, child)
	}
	if n.kind == object {
		names := map[*node]string{}
		for _, child := range children {
			names[child] = child.decodedName()
			child.key, child.untouched = appendQuoted(nil, names[child]), false
		}
		slices.SortFunc(children, func(a, b *node) int { return strings.Compare(names[a], names[b]) })
	}
	n.first, n.last = nil, nil
	for _, child := range children {
		n.add(child)
	}
}
