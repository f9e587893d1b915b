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
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
)

// Field is a leaf field whose owner or rule changes.
type Field struct {
	// Version has the field, and Other is the version that it is converted to and from.
	Version string `json:"version"`
	Other   string `json:"other"`
	Path    string `json:"path"`
	// Before and After are nil if the version did not have, or does not have, the field.
	Before *Leaf `json:"before,omitempty"`
	After  *Leaf `json:"after,omitempty"`
	Worse  bool  `json:"worse"`
	// Why is the consequence.
	Why string `json:"why"`
}

// Leaf is what happens to a leaf field in the other version.
type Leaf struct {
	Owner compile.Owner `json:"owner"`
	// Rule is the rule for the field, if there is one, and RuleAt its position in the policy.
	Rule   json.RawMessage `json:"rule,omitempty"`
	RuleAt string          `json:"ruleAt,omitempty"`

	// kind is that of the rule.
	kind string
}

// key identifies a leaf field, independent of which version is the hub.
type key struct{ version, other, path string }

func (c compiled) leavesByKey() map[key]*Leaf {
	rules, converter := map[string]v1alpha1.Rule{}, c.Policy.Spec.Converter.Declarative
	for i := range converter.Spokes {
		for _, rule := range compile.Rules(converter, i) {
			rules[rule.At] = rule.Rule // one of a group has the paths of its use
		}
	}
	found := map[key]*Leaf{}
	for _, verdict := range c.result.Leaves {
		other := c.hub()
		if verdict.Version == other {
			other = verdict.Spoke
		}
		leaf := &Leaf{Owner: verdict.Owner, RuleAt: verdict.Rule}
		if rule, has := rules[verdict.Rule]; has {
			leaf.kind = rule.Kind()
			leaf.Rule, _ = json.Marshal(&rule) // it was JSON
		}
		found[key{verdict.Version, other, verdict.Path}] = leaf
	}
	return found
}

// fieldChanges returns the fields that differ, of versions that are converted before and after.
func fieldChanges(old, next compiled) []Field {
	all := maps.Clone(old.leaves)
	maps.Copy(all, next.leaves)
	var changed []Field
	for _, k := range sortedKeys(all) {
		field := Field{Version: k.version, Other: k.other, Path: k.path, Before: old.leaves[k], After: next.leaves[k]}
		if old.Policy != nil && (!old.converts(k) || !next.converts(k)) || !field.judge() {
			continue
		}
		if old.Policy == nil {
			field.Worse, field.Why = false, "the policy is new"
		}
		changed = append(changed, field)
	}
	return changed
}

func sortedKeys(all map[key]*Leaf) []key {
	return slices.SortedFunc(maps.Keys(all), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.version, b.version), cmp.Compare(a.other, b.other), cmp.Compare(a.path, b.path))
	})
}

// converts reports whether there are rules between the versions of a leaf field.
func (c compiled) converts(k key) bool {
	return slices.ContainsFunc(c.result.Verdicts, func(verdict compile.Verdict) bool {
		return c.hub() == k.version && verdict.Version == k.other || c.hub() == k.other && verdict.Version == k.version
	})
}

// judge fills in the consequence of a change, and reports whether there is a change.
func (f *Field) judge() bool {
	switch {
	case f.After == nil:
		f.Worse, f.Why = true, fmt.Sprintf("%s lacks the field: API servers prune what objects have there", f.Version)
	case f.Before == nil && f.After.Owner == compile.OwnerDropped:
		f.Worse, f.Why = true, "the field is new, and dropped"
	case f.Before == nil:
		f.Why = "the field is new"
	case f.Before.Owner != f.After.Owner:
		f.Worse, f.Why = f.judgeOwner()
	case string(f.Before.Rule) != string(f.After.Rule):
		f.Why = "another rule"
	default:
		return false
	}
	return true
}

// judgeOwner returns the consequence of a change of the owner.
func (f *Field) judgeOwner() (worse bool, why string) {
	switch {
	case f.After.Owner == compile.OwnerDropped:
		return true, "it is lost in " + f.Other
	case f.Before.Owner == compile.OwnerDropped:
		return false, "it is no longer lost"
	case f.After.Owner == compile.OwnerPreserved:
		return true, f.Other + " no longer shows it: it is preserved"
	}
	return false, f.Other + " shows it"
}
