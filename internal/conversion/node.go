// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

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

// node is a JSON value. One that the plan does not look into is its text; an
// open one has members or elements. It is in one list of siblings at most.
type node struct {
	kind kind
	// open tells that the plan looks into the value.
	open bool
	// escaped tells that the key has escapes.
	escaped bool
	// key is the name of a member as it was written, with its quotes. A member
	// that was made here has a name instead.
	key  []byte
	name string
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
func (n *node) named(name string) bool {
	switch {
	case n.key == nil:
		return n.name == name
	case n.escaped:
		return decodeString(n.key) == name
	}
	return string(n.key[1:len(n.key)-1]) == name
}

// label is the name of a member, decoded.
func (n *node) label() string {
	if n.key == nil {
		return n.name
	}
	return decodeString(n.key)
}

// nameOf is the name of a member, decoded.
func (a *arena) nameOf(n *node) []byte {
	switch {
	case n.key == nil:
		start := len(a.text)
		a.text = append(a.text, n.name...)
		return a.since(start)
	case n.escaped:
		return a.decode(n.key)
	}
	return n.key[1 : len(n.key)-1]
}

// get returns a member, nil where there is none or the value is no open object.
func (n *node) get(name string) *node {
	for m := n.first; m != nil; m = m.next {
		if m.named(name) {
			return m
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

// set replaces a member in its place, or adds one at the end.
func (n *node) set(name string, value *node) {
	value.key, value.escaped, value.name = nil, false, name
	before, old := n.lookup(name)
	if old == nil {
		n.add(value)
		return
	}
	value.key, value.escaped, value.next = old.key, old.escaped, old.next
	n.link(before, value)
	if n.last == old {
		n.last = value
	}
}

// remove takes a member away and returns it, nil where there is none.
func (n *node) remove(name string) *node {
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
func (n *node) lookup(name string) (before, found *node) {
	for found = n.first; found != nil && !found.named(name); found = found.next {
		before = found
	}
	return before, found
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
func (n *node) detach(path Path) *node {
	parent := n.find(path[:len(path)-1])
	if parent == nil {
		return nil
	}
	return parent.remove(path[len(path)-1])
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
		dst = append(m.appendKey(dst), ':')
		dst = m.append(dst)
	}
	return append(dst, '}')
}

// appendKey writes the name of a member as JSON.
func (n *node) appendKey(dst []byte) []byte {
	if n.key == nil {
		return appendQuoted(dst, n.name)
	}
	return append(dst, n.key...)
}
