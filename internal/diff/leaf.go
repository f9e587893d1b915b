// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
)

// Field is one whose owner or rule is another one.
type Field struct {
	// Version has the field, and Other is the version that it is converted to and from.
	Version string `json:"version"`
	Other   string `json:"other"`
	Path    string `json:"path"`
	// Before and After are nil where the version has, or had, no such field.
	Before *Leaf `json:"before,omitempty"`
	After  *Leaf `json:"after,omitempty"`
	Worse  bool  `json:"worse"`
	// Why says what follows.
	Why string `json:"why"`
}

// Leaf says what becomes of a field in the other version.
type Leaf struct {
	Owner compile.Owner `json:"owner"`
	// Rule is the rule that has it, if there is one, and RuleAt where it stands in
	// the policy.
	Rule   json.RawMessage `json:"rule,omitempty"`
	RuleAt string          `json:"ruleAt,omitempty"`
}

// key tells leaves apart, whatever the hub.
type key struct{ version, other, path string }

// newLeaves are the leaves of a side, by what they are.
func (c compiled) newLeaves() map[key]*Leaf {
	found := map[key]*Leaf{}
	rules := c.rules()
	for _, verdict := range c.result.Leaves {
		other := c.hub()
		if verdict.Version == other {
			other = verdict.Spoke
		}
		found[key{verdict.Version, other, verdict.Path}] = &Leaf{verdict.Owner, rules[verdict.Rule], verdict.Rule}
	}
	return found
}

// rules are those of a policy by where they stand, as JSON.
func (c compiled) rules() map[string]json.RawMessage {
	found := map[string]json.RawMessage{}
	if c.hub() == "" {
		return found
	}
	for i, spoke := range c.Policy.Spec.Converter.Declarative.Spokes {
		for j := range spoke.Rules {
			text, _ := json.Marshal(&spoke.Rules[j]) // it was JSON
			found[fmt.Sprintf("spec.converter.declarative.spokes[%d].rules[%d]", i, j)] = text
		}
	}
	return found
}

// fields are those that differ, of versions that are converted before and after.
func fields(old, next compiled) []Field {
	was, is := old.leaves, next.leaves
	all := maps.Clone(was)
	maps.Copy(all, is)
	var changed []Field
	for _, at := range slices.SortedFunc(maps.Keys(all), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.version, b.version), cmp.Compare(a.other, b.other), cmp.Compare(a.path, b.path))
	}) {
		field := Field{Version: at.version, Other: at.other, Path: at.path, Before: was[at], After: is[at]}
		if old.Policy != nil && (!old.converts(at) || !next.converts(at)) {
			continue
		}
		if changes := field.judge(); changes && old.Policy == nil {
			field.Worse, field.Why = false, "the policy is new"
		} else if !changes {
			continue
		}
		changed = append(changed, field)
	}
	return changed
}

// converts reports whether there are rules between the versions of a leaf field.
func (c compiled) converts(at key) bool {
	return slices.ContainsFunc(c.result.Verdicts, func(verdict v1alpha1.Verdict) bool {
		return c.hub() == at.version && verdict.Version == at.other || c.hub() == at.other && verdict.Version == at.version
	})
}

// judge says what a change does to the values of a field, and reports whether
// there is any.
func (f *Field) judge() bool {
	switch {
	case f.After == nil:
		f.Worse, f.Why = true, fmt.Sprintf("%s lacks the field: API servers prune what objects have there", f.Version)
	case f.Before == nil && f.After.Owner == compile.OwnerDropped:
		f.Worse, f.Why = true, "the field is new, and dropped"
	case f.Before == nil:
		f.Why = "the field is new"
	case f.Before.Owner != f.After.Owner:
		f.Worse, f.Why = f.owner()
	case string(f.Before.Rule) != string(f.After.Rule):
		f.Why = "another rule"
	default:
		return false
	}
	return true
}

// owner judges a field that another one has.
func (f *Field) owner() (worse bool, why string) {
	switch {
	case f.After.Owner == compile.OwnerDropped:
		return true, "it is lost in " + f.Other
	case f.Before.Owner == compile.OwnerDropped:
		return false, "it is no longer lost"
	case f.After.Owner == compile.OwnerPreserved:
		return true, "" + f.Other + " no longer shows it: it is preserved"
	}
	return false, f.Other + " shows it"
}
