// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"cmp"
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// sidedObject are the fields of an object that only the source version has.
type sidedObject struct {
	path   []string
	fields map[string]*LeafField
	// known are the fields that both versions have, if only the source version may have any others.
	known map[string]bool
}

// addOneSided groups one-sided fields by the object that has them, the deepest first.
func (f *function) addOneSided(leaves []LeafField) {
	at := map[string]*sidedObject{}
	of := func(path Path) *sidedObject {
		name := path.Pointer()
		if at[name] == nil {
			at[name] = &sidedObject{path: path, fields: map[string]*LeafField{}}
			f.holders = append(f.holders, at[name])
		}
		return at[name]
	}
	for i := range leaves {
		leaf := &leaves[i]
		if leaf.Known != nil {
			known := map[string]bool{}
			for _, name := range leaf.Known {
				known[name] = true
			}
			of(leaf.Path).known = known
			continue
		}
		last := len(leaf.Path) - 1
		of(leaf.Path[:last]).fields[leaf.Path[last]] = leaf
	}
	slices.SortStableFunc(f.holders, func(a, b *sidedObject) int { return cmp.Compare(len(b.path), len(a.path)) })
}

// remove removes the fields that the target version lacks.
func (h *sidedObject) remove(r *conversionRun, value *tree.Node) *tree.Node {
	return r.WithAt(value, h.path, r.Filter(value.At(h.path), func(name string, member *tree.Node) *tree.Node {
		if h.lacks(name, member) {
			return nil
		}
		return member
	}))
}

// removesOf reports whether remove removes something of a value.
func (h *sidedObject) removesOf(value *tree.Node) bool {
	return slices.ContainsFunc(value.At(h.path).Members(), func(m tree.Member) bool { return h.lacks(m.Name, m.Value) })
}

// lacks reports whether the target version lacks a member.
func (h *sidedObject) lacks(name string, member *tree.Node) bool {
	leaf := h.fields[name]
	switch {
	case leaf == nil:
		return h.known != nil && !h.known[name]
	case leaf.Null && !member.Is(tree.Null),
		leaf.Common != nil && leaf.Common.allows(member),
		leaf.Shell && member.Is(tree.Object) && member.Len() > 0:
		return false
	}
	return true
}
