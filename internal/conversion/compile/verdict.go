// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// Owner is who has a field while an object is in the other version.
type Owner string

const (
	// OwnerExact is a place of the other version: the same, or one that a rule names.
	OwnerExact Owner = "Exact"
	// OwnerPreserved is the annotation in which fields are preserved.
	OwnerPreserved Owner = "Preserved"
	// OwnerDropped is no one: a rule gives the field up.
	OwnerDropped Owner = "Dropped"
)

// FieldVerdict says what becomes of one field of one version in a conversion
// between a spoke and the hub. A leaf is a scalar, a list or map of scalars, or
// what a schema says nothing about; the fields of an object, and of the elements
// of a list or map, are leaves of their own.
type FieldVerdict struct {
	// Spoke is the version that is converted to and from the hub.
	Spoke string
	// Version has the field: the spoke, or the hub.
	Version string
	// Path as in a policy. One that ends in [*] stands for what has no name in
	// the schema.
	Path  string
	Owner Owner
	// Rule is the field of the policy at which the field's rule stands, and empty
	// where it has none.
	Rule string
	// Odd tells that some values are preserved, and all others are not: a text that
	// does not fit the template of its rule, a list of two, or without a rule a text
	// where the other version has an integer.
	Odd bool
	// Root is the field that the rule, or the annotation, has as a whole: this
	// leaf field or something above it. It is empty where there is neither.
	Root string
}

// String is how messages name a leaf field.
func (l FieldVerdict) String() string { return l.Version + ":" + l.Path }

// ruleAt is a rule and where it stands in the policy.
type ruleAt struct {
	v1alpha1.Rule
	at *field.Path
}

// leaves gives every leaf field of both sides to its one owner.
func (c *compiler) leaves() []FieldVerdict {
	return slices.Concat(c.leavesOf(false), c.leavesOf(true))
}

// leavesOf are those of one side. Single keys of maps, labels and annotations are
// not in a schema, and neither is what an open object may hold: they are leaves
// where a rule names them, on this side or on the other one.
func (c *compiler) leavesOf(ofHub bool) []FieldVerdict {
	own, _ := c.sides(ofHub)
	owned := slices.Concat(c.preserved(ofHub), c.partlyPreserved(ofHub))
	for _, claim := range *own.claims {
		owned = append(owned, claim.path)
	}
	var paths []conversion.Path
	walker := leafWalker{owned: owned, found: func(path conversion.Path) { paths = append(paths, path) }}
	walker.object(own.schema, nil)
	for _, path := range owned {
		switch found, err := resolve(own.schema, path); {
		case err == nil && c.namesKey(own.schema, path):
			walker.value(found, path)
		case err != nil:
			paths = append(paths, path)
		}
	}
	leaves := make([]FieldVerdict, 0, len(paths))
	for _, path := range paths {
		leaves = append(leaves, c.leafVerdict(path, ofHub))
	}
	slices.SortFunc(leaves, func(a, b FieldVerdict) int { return cmp.Compare(a.Path, b.Path) })
	return slices.Compact(leaves)
}

// preserved are the fields of a side that are preserved without a rule.
func (c *compiler) preserved(ofHub bool) []conversion.Path {
	if ofHub {
		return c.preservedHub
	}
	return c.preservedSpoke
}

func (c *compiler) leafVerdict(path conversion.Path, ofHub bool) FieldVerdict {
	own, _ := c.sides(ofHub)
	leaf := FieldVerdict{Spoke: c.spokeVersion, Version: own.version, Path: path.String(), Owner: OwnerExact}
	if claim := claimOf(*own.claims, path); claim != nil {
		leaf.Rule, leaf.Root = claim.rule.at.String(), claim.path.String()
		leaf.Owner, leaf.Odd = claim.rule.owner(), c.notRoundTrippable(claim.rule, ofHub)
		return leaf
	}
	leaf.Odd = c.isPartlyPreserved(path, ofHub)
	for _, kept := range c.preserved(ofHub) {
		if path.HasPrefix(kept) {
			leaf.Owner, leaf.Root = OwnerPreserved, kept.String()
		}
	}
	return leaf
}

// claimOf is the claim of the rule that has a field, nil where none has it.
func claimOf(claims []claim, path conversion.Path) *claim {
	i := slices.IndexFunc(claims, func(c claim) bool { return path.HasPrefix(c.path) })
	if i < 0 {
		return nil
	}
	return &claims[i]
}

func (r *ruleAt) owner() Owner {
	switch {
	case r.Drop != nil:
		return OwnerDropped
	case r.Default != nil:
		return OwnerPreserved
	}
	return OwnerExact
}

// verdicts are the leaves in short. Of a field that is kept or dropped as a
// whole, they name the field.
func verdicts(leaves []FieldVerdict) []v1alpha1.Verdict {
	var all []v1alpha1.Verdict
	for _, leaf := range leaves {
		if len(all) == 0 || all[len(all)-1].Version != leaf.Spoke {
			all = append(all, v1alpha1.Verdict{Version: leaf.Spoke, ToHub: v1alpha1.FidelityExact, FromHub: v1alpha1.FidelityExact})
		}
		verdict := &all[len(all)-1]
		direction := &verdict.FromHub
		if leaf.Version == leaf.Spoke {
			direction = &verdict.ToHub
		}
		switch leaf.Owner {
		case OwnerDropped:
			*direction = v1alpha1.FidelityLossy
			verdict.Dropped = append(verdict.Dropped, leaf.Version+":"+leaf.Root)
		case OwnerPreserved:
			if *direction == v1alpha1.FidelityExact {
				*direction = v1alpha1.FidelityPreserved
			}
			verdict.Preserved = append(verdict.Preserved, leaf.Version+":"+leaf.Root)
		}
	}
	for i := range all {
		all[i].Preserved, all[i].Dropped = firstOf(all[i].Preserved), firstOf(all[i].Dropped)
	}
	return all
}

// maxPaths is how many fields a verdict names: MaxItems of the API.
const maxPaths = 20

// firstOf are the first of the paths, each once, in their order.
func firstOf(paths []string) []string {
	slices.Sort(paths)
	paths = slices.Compact(paths)
	return paths[:min(len(paths), maxPaths)]
}

// checkRequired holds the leaves against what the policy requires at least.
func checkRequired(required v1alpha1.Fidelity, leaves []FieldVerdict) field.ErrorList {
	var kept, dropped []string
	for _, leaf := range leaves {
		switch {
		case leaf.Owner == OwnerDropped && required != v1alpha1.FidelityLossy:
			dropped = append(dropped, fmt.Sprintf("%s:%s (%s)", leaf.Version, leaf.Root, shortRule(leaf.Rule)))
		case leaf.Owner == OwnerPreserved && required == v1alpha1.FidelityExact:
			kept = append(kept, leaf.Version+":"+leaf.Root)
		}
	}
	if required == "" || len(kept)+len(dropped) == 0 {
		return nil
	}
	var says []string
	lower := v1alpha1.FidelityLossy
	if len(kept) > 0 {
		says = append(says, "preserved: "+few(kept)+": write rules that give them a place in the other version")
	}
	if len(dropped) > 0 {
		says = append(says, "dropped: "+few(dropped)+": remove those rules, and the fields are preserved")
	} else {
		lower = v1alpha1.FidelityPreserved
	}
	return field.ErrorList{field.Invalid(declarativePath.Child("require"), required,
		strings.Join(says, "; ")+"; or lower require to "+string(lower))}
}

// shortRule leaves out of a rule's place what all places have in common.
func shortRule(rule string) string {
	return strings.TrimPrefix(rule, declarativePath.String()+".")
}

// fewItems is how many things a message lists before it only counts.
const fewItems = 5

// few lists the first things, each once, sorted, and counts the others.
func few(items []string) string {
	items = slices.Clone(items)
	slices.Sort(items)
	items = slices.Compact(items)
	if more := len(items) - fewItems; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(items[:fewItems], ", "), more)
	}
	return strings.Join(items, ", ")
}
