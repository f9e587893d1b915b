// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"slices"
)

// everything looks into all of a value.
var everything = func() *look {
	all := &look{}
	all.each = all
	return all
}()

// canonical writes a value so that equal values have equal texts: the order of
// members, white space and escapes mean nothing, and numbers are their text.
func canonical(n *node) string {
	all, err := parse(n.append(nil), everything)
	if err != nil {
		return string(n.append(nil)) // a name is twice in it: only its bytes tell
	}
	all.sort()
	return string(all.append(nil))
}

// sort orders all members by name, and writes all text in one way.
func (n *node) sort() {
	if n.isText() {
		n.text = appendQuoted(nil, decodeString(n.text))
	}
	var children []*node
	for child := n.first; child != nil; child = child.next {
		child.sort()
		if child.key != nil {
			child.key, child.untouched = appendQuoted(nil, child.label()), false
		}
		children = append(children, child)
	}
	if n.kind == object {
		slices.SortFunc(children, func(a, b *node) int { return bytes.Compare(a.key, b.key) })
	}
	n.first, n.last = nil, nil
	for _, child := range children {
		n.add(child)
	}
}
