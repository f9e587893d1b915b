// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"slices"
	"strings"
)

// kind of a JSON value.
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

// node is a JSON value. One that the ruleset does not look into is its text; an
// open one has members or elements. It is in one list of siblings at most.
type node struct {
	kind kind
	// open tells that the ruleset looks into the value.
	open bool
	// escaped tells that the key has escapes.
	escaped bool
	// untouched tells that the value follows the key as it was written, up to the
	// capacity of the key.
	untouched bool
	// key is the name of a member as it is written, with its quotes, and mark that
	// of the name without escapes.
	key  []byte
	mark mark
	// text is the value as it was written. That of an open one may be outdated.
	text              []byte
	next, first, last *node
}

// isObject reports whether the value is an object that can get members.
func (n *node) isObject() bool { return n.open && n.kind == object }

// isNull reports whether the value is null.
func (n *node) isNull() bool { return isNull(n.text) }

func isNull(text []byte) bool { return string(text) == "null" }

// isText reports whether the value is a string.
func (n *node) isText() bool { return isString(n.text) }

// named reports whether a member has the name.
func (n *node) named(name *name) bool { return n.mark == name.mark && n.spells(name) }

// spells reports whether a member has the name whose mark it has.
func (n *node) spells(name *name) bool {
	if n.escaped {
		return decodeString(n.key) == name.text
	}
	return len(n.key) == len(name.quoted) && (len(n.key) <= marked || bytes.Equal(n.key, name.quoted))
}

// label is the name of a member, decoded.
func (n *node) label() string { return decodeString(n.key) }

// nameOf is the name of a member, decoded.
func (a *arena) nameOf(n *node) []byte {
	if n.escaped {
		return a.decode(n.key)
	}
	return n.key[1 : len(n.key)-1]
}

// get returns a member, nil where there is none or the value is no open object.
func (n *node) get(name *name) *node {
	for m := n.first; m != nil; m = m.next {
		if m.named(name) {
			return m
		}
	}
	return nil
}

// find follows a path of names.
func (n *node) find(path segments) *node {
	for i := range path {
		if n == nil {
			return nil
		}
		n = n.get(&path[i])
	}
	return n
}

// holds reports whether there is an object at a path that can get new members.
func (n *node) holds(path segments) bool {
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

// set replaces a member in its place and returns what it was, or adds one at the end.
func (n *node) set(name *name, value *node) (old *node) {
	value.key, value.escaped, value.mark, value.untouched = name.quoted, false, name.mark, false
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

// remove takes a member away and returns it, nil where there is none.
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

// link makes next follow a child, or the first where before is nil.
func (n *node) link(before, next *node) {
	if before == nil {
		n.first = next
		return
	}
	before.next = next
}

// lookup returns a member and the one before it.
func (n *node) lookup(name *name) (before, found *node) {
	for m := n.first; m != nil; before, m = m, m.next {
		if m.named(name) {
			return before, m
		}
	}
	return before, nil
}

// keepOnly takes the members away that do not fit. While one is looked at, it and
// all behind it are still there.
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

// detach takes the value at a path away and returns it, nil where there is none.
func (n *node) detach(path segments) *node {
	parent, name := path.split()
	held := n.find(parent)
	if held == nil {
		return nil
	}
	return held.remove(name)
}

// append writes the value as JSON.
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

// everything looks into all of a value.
var everything = func() *look {
	all := &look{}
	all.each = all
	return all
}()

// Canonical writes a JSON text so that equal values have equal texts: the order of
// members, white space and escapes mean nothing, and numbers are their text. The error
// says what is wrong with the text, such as a name that is twice in an object.
func Canonical(text []byte) (string, error) {
	value, err := parse(text, everything)
	if err != nil {
		return "", err
	}
	return canonical(value), nil
}

// canonical writes a value so that equal values have equal texts: the order of
// members, white space and escapes mean nothing, and numbers are their text.
func canonical(n *node) string { return new(arena).canonical(n) }

// canonical uses the memory of an arena.
func (a *arena) canonical(n *node) string {
	if n.isText() {
		return string(appendQuoted(nil, decodeString(n.text)))
	}
	if n.kind == scalar {
		return string(n.text)
	}
	all, err := a.parse(n.append(nil), everything)
	if err != nil {
		return string(n.append(nil)) // a name is twice in it: only its bytes tell
	}
	all.sort()
	return string(all.append(nil))
}

// sort orders all members by the bytes of their names, and writes all text in one way.
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
			names[child] = child.label()
			child.key, child.untouched = appendQuoted(nil, names[child]), false
		}
		slices.SortFunc(children, func(a, b *node) int { return strings.Compare(names[a], names[b]) })
	}
	n.first, n.last = nil, nil
	for _, child := range children {
		n.add(child)
	}
}
