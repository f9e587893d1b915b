// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// pairSiblings notes for the fields of each spoke which other spokes have them.
//
// Two spokes may have a field that the hub lacks. It is then one field: the value that one spoke
// preserved is restored at the other. As soon as the object is at the other version, the value is
// removed from the annotation of the first, so that no outdated copy remains.
func pairSiblings(spokes []conversion.Spoke, schemas map[string]*schema.Structural) {
	for i := range spokes {
		for j := range spokes {
			if i != j {
				pairScopes(&spokes[i].Root, &spokes[j].Root, spokes[j].Version, schemas[spokes[i].Version], schemas[spokes[j].Version], nil, nil)
			}
		}
	}
}

func pairScopes(own, other *conversion.Scope, version string, ownSchema, otherSchema *schema.Structural, ownAbove, otherAbove conversion.Path) {
	for i := range own.OnlySpoke {
		leaf := &own.OnlySpoke[i]
		if slices.ContainsFunc(other.OnlySpoke, func(o conversion.LeafField) bool { return arePlain(leaf, &o) }) && sameField(ownSchema, otherSchema, slices.Concat(ownAbove, leaf.Path), slices.Concat(otherAbove, leaf.Path)) {
			leaf.Siblings = append(leaf.Siblings, version)
		}
	}
	for i := range own.Collections {
		c := &own.Collections[i]
		for j := range other.Collections {
			o := &other.Collections[j]
			if slices.Equal(c.Path, o.Path) && c.Map == o.Map && slices.Equal(c.Keys, o.Keys) && c.Object == o.Object && (c.Map || c.Object || len(c.Keys) > 0) {
				pairScopes(&c.Scope, &o.Scope, version, ownSchema, otherSchema,
					c.Inside(slices.Concat(ownAbove, c.At(false))), o.Inside(slices.Concat(otherAbove, o.At(false))))
			}
		}
	}
}

// arePlain reports whether two fields are preserved as a whole, at the same path.
func arePlain(a, b *conversion.LeafField) bool {
	special := a.Shell || a.Null || a.Known != nil || a.Common != nil || b.Shell || b.Null || b.Known != nil || b.Common != nil
	return !special && slices.Equal(a.Path, b.Path)
}

// sameField reports whether two fields have the same shape in their schemas.
func sameField(a, b *schema.Structural, ownPath, otherPath conversion.Path) bool {
	left, errLeft := resolve(a, ownPath)
	right, errRight := resolve(b, otherPath)
	return errLeft == nil && errRight == nil && difference(left, right, nil) == ""
}
