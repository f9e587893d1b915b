// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"slices"
	"strings"
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
	if n.raw != nil && isString(n.raw) {
		n.raw = appendString(nil, decodeString(n.raw))
	}
	for i := range n.members {
		n.members[i].key = appendString(nil, n.members[i].name)
		n.members[i].value.sort()
	}
	slices.SortFunc(n.members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	for _, element := range n.elements {
		element.sort()
	}
}

func sameScalar(a, b []byte) bool {
	if isString(a) && isString(b) {
		return decodeString(a) == decodeString(b)
	}
	return bytes.Equal(a, b)
}
