// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
)

// seen is what objects have of a leaf field.
type seen struct {
	// given is true if an object has it before any conversion, converted if one has it after one.
	given, converted bool
}

// see notes the leaf fields of a version that an object has.
func (c *Checker) see(t testObject, version string, tree any, given bool) {
	if c.seen == nil || t.canary {
		return
	}
	for i, leaf := range c.report.Leaves {
		s := &c.seen[i]
		if leaf.Version != version || given && s.given || !given && s.converted {
			continue
		}
		if path, err := conversion.ParsePath(leaf.Path); err == nil && has(tree, path) {
			s.given, s.converted = s.given || given, s.converted || !given
		}
	}
}

// fieldsUntried counts the leaf fields that no object has.
func (c *Checker) fieldsUntried() (untried int) {
	for _, s := range c.seen {
		if s == (seen{}) {
			untried++
		}
	}
	return untried
}

// unused returns the rules that did nothing, and the fields of the others that got no value.
func (c *Checker) unused(objectsFrom string) (found []Finding) {
	at := map[string][]int{}
	var rules []string
	for i, leaf := range c.report.Leaves {
		if leaf.Rule == "" || leaf.Owner == compile.OwnerDropped {
			continue
		}
		if at[leaf.Rule] == nil {
			rules = append(rules, leaf.Rule)
		}
		at[leaf.Rule] = append(at[leaf.Rule], i)
	}
	add := func(kind Kind, from, to, path, message string) {
		f := Finding{
			Severity: severities[kind], Kind: kind, From: from, To: to, Path: path, Objects: c.report.Objects,
			Example: Example{Object: objectsFrom, Message: message},
		}
		if !slices.Contains(found, f) {
			found = append(found, f)
		}
	}
	for _, rule := range rules {
		spoke := c.report.Leaves[at[rule][0]].Spoke
		if !c.anySeen(at[rule], func(s seen) bool { return s.given || s.converted }) {
			add(NoEffect, spoke, c.ruleset.Hub, rule, "without such an object, the rule is not tested")
			continue
		}
		for _, version := range []string{spoke, c.ruleset.Hub} {
			other := spoke
			if version == spoke {
				other = c.ruleset.Hub
			}
			if !c.anySeen(c.leavesAt(at[rule], other, ""), func(s seen) bool { return s.given }) {
				continue
			}
			for _, i := range c.leavesAt(at[rule], version, "") {
				root := c.report.Leaves[i].Root
				if !c.anySeen(c.leavesAt(at[rule], version, root), func(s seen) bool { return s.given || s.converted }) {
					add(NoValue, other, version, root, "objects have fields of its rule, and nothing comes of them")
				}
			}
		}
	}
	return found
}

// leavesAt returns those of the leaf fields that are of a version, and of a field with a rule, unless
// that is empty.
func (c *Checker) leavesAt(leaves []int, version, root string) (of []int) {
	for _, i := range leaves {
		if leaf := c.report.Leaves[i]; leaf.Version == version && (root == "" || leaf.Root == root) {
			of = append(of, i)
		}
	}
	return of
}

func (c *Checker) anySeen(leaves []int, are func(seen) bool) bool {
	return slices.ContainsFunc(leaves, func(i int) bool { return are(c.seen[i]) })
}

// has reports whether an object has a value at a path.
func has(tree any, path conversion.Path) bool {
	if len(path) == 0 {
		return true
	}
	switch tree := tree.(type) {
	case map[string]any:
		if member, is := tree[path[0]]; is {
			return has(member, path[1:])
		}
		if path[0] != conversion.Each {
			return false
		}
		for _, member := range tree {
			if has(member, path[1:]) {
				return true
			}
		}
	case []any:
		return path[0] == conversion.Each && slices.ContainsFunc(tree, func(element any) bool { return has(element, path[1:]) })
	}
	return false
}
