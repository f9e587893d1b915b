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
	// side is a version's fields of a rule, and ruleField one field with all in it.
	type side struct{ rule, version string }
	type ruleField struct {
		side
		root string
	}
	tried, given, got, done := map[string]bool{}, map[side]bool{}, map[ruleField]bool{}, map[ruleField]bool{}
	c.eachRuled(func(leaf Leaf, s seen) {
		at := side{leaf.Rule, leaf.Version}
		tried[leaf.Rule] = tried[leaf.Rule] || s.given || s.converted
		given[at] = given[at] || s.given
		got[ruleField{at, leaf.Root}] = got[ruleField{at, leaf.Root}] || s.given || s.converted
	})
	add := func(kind Kind, from, to, path, message string) {
		found = append(found, Finding{
			Severity: severities[kind], Kind: kind, From: from, To: to, Path: path, Objects: c.report.Objects,
			Example: Example{Object: objectsFrom, Message: message},
		})
	}
	c.eachRuled(func(leaf Leaf, _ seen) {
		other := leaf.Spoke
		if leaf.Version == leaf.Spoke {
			other = c.ruleset.Hub
		}
		at := ruleField{side{leaf.Rule, leaf.Version}, leaf.Root}
		if !tried[leaf.Rule] {
			at = ruleField{side: side{rule: leaf.Rule}}
		}
		switch {
		case done[at]:
			return
		case !tried[leaf.Rule]:
			add(NoEffect, leaf.Spoke, c.ruleset.Hub, leaf.Rule, "without such an object, the rule is not tested")
		case given[side{leaf.Rule, other}] && !got[at]:
			add(NoValue, other, leaf.Version, leaf.Root, "objects have fields of its rule, and nothing comes of them")
		}
		done[at] = true
	})
	return found
}

// eachRuled calls do for each leaf field that a rule gives a value.
func (c *Checker) eachRuled(do func(Leaf, seen)) {
	for i, leaf := range c.report.Leaves {
		if leaf.Rule != "" && leaf.Owner != compile.OwnerDropped {
			do(leaf, c.seen[i])
		}
	}
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
