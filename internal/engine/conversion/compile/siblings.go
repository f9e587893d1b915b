// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// pairSiblings notes for the fields of each spoke which other spokes have them.
//
// Two spokes may have a field that the hub lacks. It is then one field: the value that one spoke
// preserved is restored at the other. As soon as the object is at the other version, the value is
// removed from the annotation of the first, so that no outdated copy remains.
func pairSiblings(spokes []conversion.Spoke, schemas map[string]*schema.Structural) {
	fields := make([][]lackingField, len(spokes))
	for i := range spokes {
		fields[i] = lackingFields(&spokes[i].Root, "", nil, schemas[spokes[i].Version])
	}
	for i := range fields {
		for _, own := range fields[i] {
			for j := range fields {
				if i != j && slices.ContainsFunc(fields[j], own.is) {
					own.leaf.Siblings = append(own.leaf.Siblings, spokes[j].Version)
				}
			}
		}
	}
}

// lackingField is a field of a spoke that the hub lacks, and that is preserved as a whole.
type lackingField struct {
	leaf *conversion.LeafField
	// inHub is where the hub would have it: its path there, with the keys of lists.
	inHub  string
	schema *schema.Structural
}

// is reports whether two fields are in the same place, and have the same shape.
func (f lackingField) is(other lackingField) bool {
	return f.inHub == other.inHub && difference(f.schema, other.schema, nil) == ""
}

// lackingFields returns those of a scope, by where it is in the hub and in the spoke. Elements without keys have none.
func lackingFields(s *conversion.Scope, inHub string, at conversion.Path, root *schema.Structural) (fields []lackingField) {
	for i := range s.OnlySpoke {
		leaf := &s.OnlySpoke[i]
		found, err := resolve(root, slices.Concat(at, leaf.Path))
		if special := leaf.Shell || leaf.Null || leaf.Known != nil || leaf.Common != nil; !special && err == nil && !s.IsTaken(leaf.Path) {
			fields = append(fields, lackingField{leaf, inHub + leaf.Path.Pointer(), found})
		}
	}
	for i := range s.Collections {
		c := &s.Collections[i]
		within := inHub + c.Hub.Pointer()
		switch {
		case c.SpokeForm != c.HubForm:
			continue
		case c.HubForm == conversion.FormMap:
			within += "{}"
		case len(c.Keys) > 0:
			within += "[" + strings.Join(c.Keys, ",") + "]"
		case !c.IsOne():
			continue
		}
		fields = append(fields, lackingFields(&c.Scope, within, c.Inside(false, at), root)...)
	}
	return fields
}
