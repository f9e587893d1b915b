// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"slices"
	"strings"
)

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
