// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import "bytes"

// everything looks into all of a value.
var everything = func() *look {
	all := &look{}
	all.each = all
	return all
}()

// equal compares two values as JSON: the order of members and white space mean
// nothing, and numbers are compared by their text.
func equal(a, b *node) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.raw != nil && b.raw != nil && bytes.Equal(a.raw, b.raw) {
		return true
	}
	return sameValue(expand(a), expand(b))
}

// expand looks into all of a value. What was parsed once parses again.
func expand(n *node) *node {
	all, err := parse(n.append(nil), everything)
	if err != nil {
		return n
	}
	return all
}

func sameValue(a, b *node) bool {
	switch {
	case a.raw != nil || b.raw != nil:
		return a.raw != nil && b.raw != nil && sameScalar(a.raw, b.raw)
	case a.kind != b.kind || len(a.members) != len(b.members) || len(a.elements) != len(b.elements):
		return false
	}
	for i := range a.elements {
		if !sameValue(a.elements[i], b.elements[i]) {
			return false
		}
	}
	for _, member := range a.members {
		other := b.get(member.name)
		if other == nil || !sameValue(member.value, other) {
			return false
		}
	}
	return true
}

func sameScalar(a, b []byte) bool {
	if isString(a) && isString(b) {
		return decodeString(a) == decodeString(b)
	}
	return bytes.Equal(a, b)
}
