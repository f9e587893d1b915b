// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"math/big"
	"slices"
	"strings"
)

// Equal reports whether two values are equal, or both missing: numbers by their text, and objects without regard to
// the order of members. Values that are the same node cost nothing.
func (a *Arena) Equal(x, y *Node) bool {
	if x == y {
		return true
	}
	if x == nil || y == nil || x.kind != y.kind {
		return false
	}
	a.Spend(1, 0)
	if x.raw != nil && y.raw != nil && bytes.Equal(x.raw, y.raw) {
		return true
	}
	switch x.kind {
	case String:
		return x.Text() == y.Text()
	case List:
		return slices.EqualFunc(x.Elems(), y.Elems(), a.Equal)
	case Object:
		if len(x.Members()) != len(y.Members()) {
			return false
		}
		for i, m := range x.members {
			if other := y.Near(i, m.Name); other == nil || !a.Equal(m.Value, other) {
				return false
			}
		}
		return true
	}
	return false
}

// maxDigits bounds the numbers that are compared by value: an exponent can make them as long as it likes.
const maxDigits = 40

// SameNumber reports whether two numbers have the same value, as 1 and 1.0.
func SameNumber(x, y *Node) bool {
	if bytes.Equal(x.raw, y.raw) {
		return true
	}
	if len(x.raw) > maxDigits || len(y.raw) > maxDigits {
		return false
	}
	one, _, err := big.ParseFloat(string(x.raw), 10, 192, big.ToNearestEven) //nolint:mnd // bits for that many digits
	if err != nil {
		return false
	}
	other, _, err := big.ParseFloat(string(y.raw), 10, 192, big.ToNearestEven) //nolint:mnd // as above
	return err == nil && one.Cmp(other) == 0
}

// Digest identifies the content of a value: the first 16 hexadecimal digits of the SHA-256 of its canonical form, in
// which the lists and objects in it are their digests. It is computed once for each node.
func (a *Arena) Digest(n *Node) string {
	if n.more != nil && n.more.digest != "" {
		return n.more.digest
	}
	const digits = 16
	sum := sha256.Sum256(a.canonical(nil, n, a.appendDigest))
	rest := n.rest()
	rest.digest = hex.EncodeToString(sum[:])[:digits]
	return rest.digest
}

func (a *Arena) appendDigest(dst []byte, n *Node) []byte {
	if n.Len() == 0 {
		return a.Canonical(dst, n)
	}
	return append(dst, a.Digest(n)...)
}

// Canonical appends a normal form of a value, the same for equal values.
func (a *Arena) Canonical(dst []byte, n *Node) []byte { return a.canonical(dst, n, a.Canonical) }

func (a *Arena) canonical(dst []byte, n *Node, inside func([]byte, *Node) []byte) []byte {
	a.Spend(1, 0)
	switch n.kind {
	case String:
		return Quote(dst, n.Text())
	case List:
		dst = append(dst, '[')
		for i, element := range n.Elems() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = inside(dst, element)
		}
		return append(dst, ']')
	case Object:
		members := n.Members()
		if !slices.IsSortedFunc(members, compareNames) {
			members = slices.Clone(members)
			slices.SortFunc(members, compareNames)
		}
		dst = append(dst, '{')
		for i, m := range members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = inside(append(Quote(dst, m.Name), ':'), m.Value)
		}
		return append(dst, '}')
	}
	return append(dst, n.raw...)
}

func compareNames(x, y Member) int { return strings.Compare(x.Name, y.Name) }
