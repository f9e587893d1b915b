// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"slices"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// keep takes the fields of rules that the policy already has: they are no longer open, and not copied.
func (g *guesser) keep(rules []v1alpha1.Rule) {
	for i := range rules {
		spoke, hub := rules[i].Paths()
		left, right := fieldsOf(g.spoke, spoke), fieldsOf(g.hub, hub)
		if rules[i].Move != nil && len(left) == 1 && len(right) == 1 && g.renames(left[0], right[0]) {
			g.pairs.renamed[left[0]] = right[0]
			g.pair(g.pairs.renamed)
			continue
		}
		for _, f := range slices.Concat(left, right) {
			g.kept[f] = true
			for at := f.parent; at != nil; at = at.parent {
				g.keptBelow[at] = true
			}
		}
	}
	g.pair(g.pairs.renamed)
}

// fieldsOf returns the fields with the paths, or the innermost ones around them that have fields in the schema. A label
// or an annotation has none.
func fieldsOf(root *field, paths []v1alpha1.Path) (found []*field) {
	for _, text := range paths {
		path, err := conversion.ParsePath(string(text))
		if err != nil {
			continue // the compiler refuses the rule
		}
		at := root
		for _, name := range path {
			if at.children[name] == nil {
				break
			}
			at = at.children[name]
		}
		if at != root {
			found = append(found, at)
		}
	}
	return found
}
