// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tree has JSON values as immutable trees that share what is equal in them.
//
// A node is its text, its kind, and its members or elements (tree.go). A reader (read.go, scan.go) makes the nodes
// of a text, in the memory of an arena (arena.go), which is used again for the next text. A change of a value gives
// another value (change.go), which shares every node that did not change: so that two values differ is found out
// (compare.go) by looking at what has changed, however large they are, and what has not changed is written as
// it was read (write.go).
package tree

import (
	"bytes"
	"slices"
	"strings"
	"unsafe"
)

// Kind is the type of a value.
type Kind byte

// The kinds of JSON values.
const (
	Null Kind = iota
	Bool
	Number
	String
	List
	Object
)

// Node is an immutable value. It may be part of several trees. A nil Node is a value that is missing.
type Node struct {
	// raw is the text, nil for a list or object that was not read.
	raw     []byte
	members []Member
	elems   []*Node
	// unread has the memory for what is in the value, if that was not read yet.
	unread *Arena
	// more is what few nodes have.
	more *more
	kind Kind
	// opened is how often a value around this one was read when it was looked into.
	opened uint8
	// run is the number of the run of the arena that may still change the node.
	run uint32
}

// more is what is derived from a node when it is first needed.
type more struct {
	// index has the positions of many members.
	index  map[string]int
	digest string
	// source is the value that an element was converted from, in the run.
	source *Node
	run    uint32
	// back is what the value becomes again the other way, and by the way there; nil if that is unknown, or the value has
	// changed since.
	back *Node
	by   any
}

// Member is a member of an object.
type Member struct {
	Name  string
	Value *Node
	// key is the name as it was read, with quotes; nil if it was not read.
	key []byte
}

// Kind returns the kind, Null for a missing value.
func (n *Node) Kind() Kind {
	if n == nil {
		return Null
	}
	return n.kind
}

// Is reports whether there is a value of the kind.
func (n *Node) Is(kind Kind) bool { return n != nil && n.kind == kind }

// IsScalar reports whether there is a value that is no list and no object.
func (n *Node) IsScalar() bool { return n != nil && n.kind < List }

// Members returns the members of an object, nil for any other value. They must not be changed.
func (n *Node) Members() []Member {
	if n == nil {
		return nil
	}
	if n.unread != nil {
		n.open()
	}
	return n.members
}

// Elems returns the elements of a list, nil for any other value. They must not be changed.
func (n *Node) Elems() []*Node {
	if n == nil {
		return nil
	}
	if n.unread != nil {
		n.open()
	}
	return n.elems
}

// Len returns the number of members or elements.
func (n *Node) Len() int { return len(n.Members()) + len(n.Elems()) }

// manyMembers is the number of members above which an index is faster than a search.
const manyMembers = 16

// position returns the position of a member, -1 if there is none.
func (n *Node) position(name string) int {
	if n.unread != nil {
		n.open()
	}
	if len(n.members) <= manyMembers {
		for i := range n.members {
			if n.members[i].Name == name {
				return i
			}
		}
		return -1
	}
	rest := n.rest()
	if rest.index == nil {
		rest.index = make(map[string]int, len(n.members))
		for i := range n.members {
			rest.index[n.members[i].Name] = i
		}
	}
	if pos, found := rest.index[name]; found {
		return pos
	}
	return -1
}

func (n *Node) rest() *more {
	if n.more == nil {
		n.more = &more{}
	}
	return n.more
}

// Get returns a member, nil if there is none.
func (n *Node) Get(name string) *Node {
	if n == nil {
		return nil
	}
	if pos := n.position(name); pos >= 0 {
		return n.members[pos].Value
	}
	return nil
}

// Near is Get for a member that is probably at the position, as one of a similar object.
func (n *Node) Near(pos int, name string) *Node {
	if n == nil {
		return nil
	}
	if n.unread != nil {
		n.open()
	}
	if pos < len(n.members) && n.members[pos].Name == name {
		return n.members[pos].Value
	}
	return n.Get(name)
}

// At returns the value at a path of members, nil if there is none. A segment may select an element of a list (CutSelector).
func (n *Node) At(path []string) *Node {
	for _, name := range path {
		if n.Is(List) {
			pos := n.selected(name)
			if pos < 0 {
				return nil
			}
			n = n.elems[pos]
		} else if n = n.Get(name); n == nil {
			return nil
		}
	}
	return n
}

// CutSelector returns the member and the text of a segment such as [name=main], which selects the element of a list whose
// member name is the string main. It reports whether a segment is one.
func CutSelector(segment string) (member, text string, is bool) {
	if !strings.HasPrefix(segment, "[") || !strings.HasSuffix(segment, "]") {
		return "", "", false
	}
	return strings.Cut(segment[1:len(segment)-1], "=")
}

// selected returns the position of the first element of a list that a segment selects, -1 if there is none.
func (n *Node) selected(segment string) int {
	member, text, is := CutSelector(segment)
	if !is {
		return -1
	}
	return slices.IndexFunc(n.Elems(), func(element *Node) bool {
		key := element.Get(member)
		return key.Is(String) && key.Text() == text
	})
}

// Text returns the text of a string without quotes and escapes, "" for any other value.
func (n *Node) Text() string {
	if !n.Is(String) {
		return ""
	}
	return unquoted(n.raw)
}

// unquoted shares the memory of a text without escapes.
func unquoted(quoted []byte) string {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return viewOf(inner)
	}
	return string(Unquote(nil, inner))
}

// JSON returns the value as JSON.
func (n *Node) JSON() []byte {
	if n.raw != nil {
		return n.raw
	}
	return n.Append(nil)
}

// Start returns where a value begins in the text from which it was read.
func (n *Node) Start(text []byte) int {
	return int(uintptr(unsafe.Pointer(unsafe.SliceData(n.raw))) - uintptr(unsafe.Pointer(unsafe.SliceData(text))))
}

// Source returns the value that an element was converted from in a run; the element itself if it was not converted.
func (n *Node) Source(run uint32) *Node {
	for n.more != nil && n.more.source != nil && n.more.run == run {
		n = n.more.source
	}
	return n
}

// Origin returns the value that an element was converted from last, nil if it was not converted.
func (n *Node) Origin() *Node {
	if n.more == nil {
		return nil
	}
	return n.more.source
}

// Back returns what the value that by has made becomes again, nil if that is unknown.
func (n *Node) Back(by any) *Node {
	if n.more == nil || n.more.by != by {
		return nil
	}
	return n.more.back
}

// IsSame reports whether two values are the same node, or the same part of a text.
func (n *Node) IsSame(other *Node) bool {
	return n == other || n != nil && other != nil && len(n.raw) > 0 && len(n.raw) == len(other.raw) && &n.raw[0] == &other.raw[0]
}
