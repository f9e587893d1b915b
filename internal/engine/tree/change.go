// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"bytes"
	"slices"
)

// NewObject returns an object without members.
func (a *Arena) NewObject() *Node {
	n := a.node()
	n.kind, n.run = Object, a.run
	return n
}

// NewList returns a list of values. It keeps the slice.
func (a *Arena) NewList(elems []*Node) *Node {
	n := a.node()
	n.kind, n.run, n.elems = List, a.run, elems
	return n
}

// Room returns an empty slice with room for elements.
func (a *Arena) Room(elems int) []*Node {
	const pointer = 8
	a.Spend(elems/pointer, pointer*elems)
	return a.elems.take(elems)[:0]
}

// Bytes returns an empty slice with room for bytes.
func (a *Arena) Bytes(room int) []byte {
	a.Spend(0, room)
	return a.text.take(room)[:0]
}

// NewText returns a string.
func (a *Arena) NewText(text string) *Node { return a.NewTextOf(bytesOf(text)) }

// NewTextOf returns a string of bytes, which it copies.
func (a *Arena) NewTextOf(text []byte) *Node {
	quotes := 2 + bytes.Count(text, []byte{'"'}) // each of those in the text needs an escape
	n := a.node()
	n.kind, n.raw = String, quote(a.Bytes(len(text)+quotes), text)
	return n
}

// NewScalar returns a null, boolean, number or string by its JSON text, which must be valid. It keeps the text.
func (a *Arena) NewScalar(text []byte) *Node {
	n := a.node()
	n.kind, n.raw = kindOf(text[0]), text
	return n
}

// own returns the node itself if it was made in this run, and a copy with room for some more members if not.
func (a *Arena) own(n *Node, room int) *Node {
	if n.run == a.run && n.raw == nil {
		return n
	}
	c := a.NewObject()
	c.members = a.copyMembers(n.Members(), room)
	if n.more != nil && n.more.source != nil {
		c.more = &a.rest.take(1)[0]
		c.more.source, c.more.run = n.more.source, n.more.run
	}
	return c
}

// With returns an object with a member: nil removes it.
func (a *Arena) With(n *Node, name string, value *Node) *Node {
	return a.with(n, n.position(name), name, value)
}

// with is With for a member of which the position is known, -1 if there is none.
func (a *Arena) with(n *Node, pos int, name string, value *Node) *Node {
	switch {
	case pos < 0 && value == nil:
		return n
	case pos >= 0 && n.members[pos].Value == value:
		if a.MayChange(n) {
			n.changed(true) // the value itself may have changed
		}
		return n
	case value == nil:
		n = a.own(n, 0)
		n.members = slices.Delete(n.members, pos, pos+1)
		n.changed(false)
	case pos >= 0:
		n = a.own(n, 0)
		n.members[pos].Value = value
		n.changed(true)
	default:
		const some = 4
		n = a.own(n, some)
		if len(n.members) == cap(n.members) {
			n.members = a.copyMembers(n.members, len(n.members)+some)
		}
		n.members = append(n.members, Member{Name: name, Value: value})
		if n.changed(true); n.more != nil && n.more.index != nil {
			n.more.index[name] = len(n.members) - 1
		}
	}
	return n
}

// changed forgets what was derived from the content of a node that has changed; the positions of its members stay.
func (n *Node) changed(positionsStay bool) {
	if n.more == nil {
		return
	}
	n.more.digest, n.more.back, n.more.by = "", nil, nil
	if !positionsStay {
		n.more.index = nil
	}
}

// WithAt returns a value with another value at a path of members: nil removes that, and anything else
// also makes the objects around it, and the elements that segments select. In an object, any segment is a name.
func (a *Arena) WithAt(n *Node, path []string, value *Node) *Node {
	if len(path) == 0 {
		return value
	}
	if !n.Is(Object) {
		if member, text, is := CutSelector(path[0]); is {
			return a.withElement(n, path, member, text, value)
		}
		if value == nil {
			return n
		}
		n = a.NewObject()
	}
	pos := n.position(path[0])
	var old *Node
	switch {
	case pos >= 0:
		old = n.members[pos].Value
	case value == nil:
		return n
	}
	return a.with(n, pos, path[0], a.WithAt(old, path[1:], value))
}

// withElement is WithAt for a path that begins with a selector.
func (a *Arena) withElement(n *Node, path []string, member, text string, value *Node) *Node {
	pos := -1
	if n.Is(List) {
		pos = n.selected(path[0])
	}
	switch {
	case pos >= 0:
		return a.withElem(n, pos, a.WithAt(n.elems[pos], path[1:], value))
	case value == nil:
		return n
	}
	element := a.WithAt(a.With(a.NewObject(), member, a.NewText(text)), path[1:], value)
	return a.NewList(append(append(a.Room(len(n.Elems())+1), n.Elems()...), element))
}

// withElem returns a list with another element at a position.
func (a *Arena) withElem(n *Node, pos int, element *Node) *Node {
	if n.elems[pos] == element {
		return n
	}
	elems := append(a.Room(len(n.elems)), n.elems...)
	elems[pos] = element
	return a.NewList(elems)
}

// TakeAt returns the value at a path of members, nil if there is none, and the rest without it.
func (a *Arena) TakeAt(n *Node, path []string) (taken, rest *Node) {
	if len(path) == 0 {
		return n, nil
	}
	if n.Is(List) {
		pos := n.selected(path[0])
		if pos < 0 {
			return nil, n
		}
		taken, rest = a.TakeAt(n.elems[pos], path[1:])
		return taken, a.withElem(n, pos, rest)
	}
	if !n.Is(Object) {
		return nil, n
	}
	pos := n.position(path[0])
	if pos < 0 {
		return nil, n
	}
	if taken, rest = a.TakeAt(n.members[pos].Value, path[1:]); taken == nil {
		return nil, n
	}
	return taken, a.with(n, pos, path[0], rest)
}

// Filter returns an object with the members, or a list with the elements, for which change returns a value, and with
// these values. name is empty for elements.
func (a *Arena) Filter(n *Node, change func(name string, value *Node) *Node) *Node {
	if n.Is(List) {
		return a.filterList(n, change)
	}
	var changed *Node
	for i, m := range n.Members() {
		value := change(m.Name, m.Value)
		if changed == nil {
			if value == m.Value {
				continue
			}
			changed = a.NewObject()
			changed.members = a.copyMembers(n.members[:i], len(n.members)-i)
		}
		if value != nil {
			m.Value = value
			changed.members = append(changed.members, m)
		}
	}
	if changed == nil {
		return n
	}
	return changed
}

func (a *Arena) filterList(n *Node, change func(name string, value *Node) *Node) *Node {
	var changed []*Node
	same := true
	for i, element := range n.Elems() {
		value := change("", element)
		if same {
			if value == element {
				continue
			}
			same, changed = false, append(a.Room(len(n.elems)), n.elems[:i]...)
		}
		if value != nil {
			changed = append(changed, value)
		}
	}
	if same {
		return n
	}
	return a.NewList(changed)
}

// MayChange reports whether a value was made in this run.
func (a *Arena) MayChange(n *Node) bool { return n != nil && n.run == a.run }

// NoteBack notes of a value that was made in this run what it becomes again the other way. by identifies the way there.
func (a *Arena) NoteBack(n, back *Node, by any) {
	if a.MayChange(n) && n.raw == nil {
		n.more = &a.rest.take(1)[0]
		n.more.back, n.more.by = back, by
	}
}

// Insert returns an object with a new member before all others.
func (a *Arena) Insert(n *Node, name string, value *Node) *Node {
	c := a.NewObject()
	c.members = append(append(a.takeMembers(len(n.Members()) + 1)[:0], Member{Name: name, Value: value}), n.Members()...)
	return c
}

// From returns an element with the record that it was converted from a value in this run.
func (a *Arena) From(element, source *Node) *Node {
	if element == nil || element == source || element.more != nil && element.more.source == source && element.more.run == a.run {
		return element
	}
	a.Spend(1, nodeSize)
	isNoted := element.more != nil && element.more.back != nil
	if !isNoted && element.more != nil || element.raw != nil || element.run != a.run {
		c := &a.nodes.take(1)[0]
		*c = *element
		element = c
	}
	if !isNoted {
		element.more = &a.rest.take(1)[0]
	}
	element.more.source, element.more.run = source, a.run
	return element
}
