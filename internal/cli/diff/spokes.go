// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/cli/draft"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
)

// Spoke is a version other than the hub whose rules a change of the schemas affects: it is new, rules of it are no
// longer valid, or fields of it or of the hub have another counterpart than before.
type Spoke struct {
	Version string `json:"version"`
	// At is the position of the spoke in the policy, empty if the policy lacks the version.
	At string `json:"at,omitempty"`
	// Rules are those of the policy.
	Rules []Rule `json:"rules,omitempty"`
	// Preserved are the fields of the spoke and of the hub that have no counterpart, and did not exist or had
	// one before the change.
	Preserved []draft.Place `json:"preserved,omitempty"`
	// Removed are the fields that their version no longer has: API servers prune their values.
	Removed []draft.Place `json:"removed,omitempty"`
	// Drafted are rules for these fields, and Ambiguous those of them for which there may be a rule.
	Drafted   []draft.Rule      `json:"drafted,omitempty"`
	Ambiguous []draft.Ambiguous `json:"ambiguous,omitempty"`
}

// Rule is a rule of the policy, with the errors of the compiler if the schemas after the change do not allow it.
type Rule struct {
	At     string        `json:"at"`
	Rule   v1alpha1.Rule `json:"rule"`
	Errors []string      `json:"errors,omitempty"`
	// Replacement is a draft of the rule with other paths, which the schemas allow.
	Replacement *draft.Rule `json:"replacement,omitempty"`
}

// IsNew reports whether the policy lacks the version.
func (s *Spoke) IsNew() bool { return s.At == "" }

// Invalid returns the rules that are no longer valid.
func (s *Spoke) Invalid() []Rule {
	return slices.DeleteFunc(slices.Clone(s.Rules), func(rule Rule) bool { return len(rule.Errors) == 0 })
}

// good returns the rules that are valid, and the replacements of others.
func (s *Spoke) good() (rules []v1alpha1.Rule) {
	for _, rule := range s.Rules {
		switch {
		case len(rule.Errors) == 0:
			rules = append(rules, rule.Rule)
		case rule.Replacement != nil:
			rules = append(rules, rule.Replacement.Rule)
		}
	}
	return rules
}

// affectedSpokes returns the spokes whose rules a change of the schemas affects, with drafts of missing rules.
func affectedSpokes(old, next compiled) ([]Spoke, error) {
	if old.Policy == nil || old.result.Ruleset == nil || next.hub() != old.hub() {
		return nil, nil
	}
	if len(compile.CheckGroups(next.Policy.Spec.Converter.Declarative)) > 0 {
		return nil, nil // the rules are not known
	}
	valid, refused := next.withoutInvalid()
	if valid.result.Ruleset == nil || !slices.Contains(valid.result.Ruleset.Versions, next.hub()) {
		return nil, nil // the schemas themselves are not valid, or the hub is missing
	}
	var affected []Spoke
	for _, version := range valid.result.Ruleset.Versions {
		if version == next.hub() || sameSchema(old, next, version) && sameSchema(old, next, next.hub()) {
			continue
		}
		spoke := next.spoke(version, refused)
		changed := valid.listChanges(old, &spoke)
		if err := valid.repair(old, &spoke); err != nil {
			return nil, err
		}
		if err := valid.draft(&spoke, changed); err != nil {
			return nil, fmt.Errorf("draft rules for %s: %w", version, err)
		}
		if len(spoke.Invalid())+len(spoke.Preserved)+len(spoke.Removed)+len(spoke.Drafted)+len(spoke.Ambiguous) > 0 {
			affected = append(affected, spoke)
		}
	}
	return affected, nil
}

// sameSchema reports whether a version has the same schema on both sides.
func sameSchema(old, next compiled, version string) bool {
	before, _ := crds.Version(old.CRD, version)
	after, _ := crds.Version(next.CRD, version)
	return before != nil && after != nil && reflect.DeepEqual(before.Schema, after.Schema)
}

// withoutInvalid removes the rules that the compiler refuses, and returns its errors by the positions of the rules.
func (c compiled) withoutInvalid() (valid compiled, refused map[string][]string) {
	refused = map[string][]string{}
	for {
		side := c.Side
		side.Policy = c.Policy.DeepCopy()
		rules := side.Policy.Spec.Converter.Declarative
		// What the policy requires of its rules holds for all of them.
		rules.MinimumFidelity, rules.PreservedStatus = "", ""
		rules.RuleGroups = nil
		positions := map[string]string{}
		for i := range rules.Spokes {
			spoke := &rules.Spokes[i]
			spoke.Rules = nil
			for _, rule := range compile.Rules(c.Policy.Spec.Converter.Declarative, i) {
				if len(refused[rule.At]) == 0 {
					positions[compile.RulePath(i, len(spoke.Rules))] = rule.At
					spoke.Rules = append(spoke.Rules, rule.Rule)
				}
			}
		}
		valid = compileSide(side)
		before := len(refused)
		for _, err := range valid.result.Errors {
			if at, found := positions[ruleOf(err.Field)]; found {
				refused[at] = append(refused[at], err.ErrorBody())
			}
		}
		if len(refused) == before {
			return valid, refused
		}
	}
}

// ruleOf returns the position of the rule that a path in a policy is in.
func ruleOf(path string) string {
	head, rest, _ := strings.Cut(path, ".rules[")
	index, _, _ := strings.Cut(rest, "]")
	return head + ".rules[" + index + "]"
}

// spoke returns a spoke with the rules that the policy has for it, those of groups for each of their uses.
func (c compiled) spoke(version string, refused map[string][]string) Spoke {
	found := Spoke{Version: version}
	converter := c.Policy.Spec.Converter.Declarative
	for i, spoke := range converter.Spokes {
		if string(spoke.Version) != version {
			continue
		}
		found.At = compile.SpokePath(i)
		for _, rule := range compile.Rules(converter, i) {
			found.Rules = append(found.Rules, Rule{At: rule.At, Rule: rule.Rule, Errors: refused[rule.At]})
		}
	}
	return found
}

// listChanges lists the fields of a spoke and of the hub whose owner changes, and returns all of them.
func (c compiled) listChanges(old compiled, spoke *Spoke) (changed []draft.Place) {
	all := maps.Clone(old.leaves)
	maps.Copy(all, c.leaves)
	for _, k := range sortedKeys(all) {
		if k.version+" "+k.other != spoke.Version+" "+c.hub() && k.version+" "+k.other != c.hub()+" "+spoke.Version {
			continue
		}
		before, after, place := old.leaves[k], c.leaves[k], draft.Place{Version: k.version, Path: k.path}
		switch {
		case after == nil:
			spoke.Removed = append(spoke.Removed, place)
		case before != nil && before.Owner == after.Owner:
			continue
		case after.Owner == compile.OwnerPreserved:
			spoke.Preserved = append(spoke.Preserved, place)
		}
		changed = append(changed, place)
	}
	return changed
}

// draft adds drafts of rules for fields that changed. Valid rules of the policy, and replacements, are kept.
func (c compiled) draft(spoke *Spoke, changed []draft.Place) error {
	if len(changed) == 0 {
		return nil
	}
	made, err := draft.Make(draft.Input{CRD: c.CRD, Spoke: spoke.Version, Hub: c.hub(), Rules: spoke.good()})
	if err != nil {
		return err
	}
	touches := func(version, path string) bool {
		return slices.ContainsFunc(changed, func(place draft.Place) bool {
			return place.Version == version && (isIn(place.Path, path) || isIn(path, place.Path))
		})
	}
	for _, rule := range made.Rules {
		from, to := rule.Rule.Paths()
		isOfChanged := slices.ContainsFunc(from, func(path v1alpha1.Path) bool { return touches(spoke.Version, string(path)) }) ||
			slices.ContainsFunc(to, func(path v1alpha1.Path) bool { return touches(c.hub(), string(path)) })
		if isOfChanged && !slices.ContainsFunc(spoke.Invalid(), func(old Rule) bool { return isPartOf(from, to, &old.Rule) }) {
			spoke.Drafted = append(spoke.Drafted, rule)
		}
	}
	for _, ambiguous := range made.Ambiguous {
		if touches(ambiguous.Version, ambiguous.Path) {
			spoke.Ambiguous = append(spoke.Ambiguous, ambiguous)
		}
	}
	return nil
}

// isPartOf reports whether a rule of the policy computes the same fields together with others, such as a host from a
// host and a port: then, without the others, they are known to differ.
func isPartOf(from, to []v1alpha1.Path, rule *v1alpha1.Rule) bool {
	spoke, hub := rule.Paths()
	isOther := func(others []v1alpha1.Path) func(v1alpha1.Path) bool {
		return func(path v1alpha1.Path) bool { return !slices.Contains(others, path) }
	}
	return len(spoke)+len(hub) > 2 && !slices.ContainsFunc(from, isOther(spoke)) && !slices.ContainsFunc(to, isOther(hub))
}

// repair gives rules that are no longer valid the new paths of fields that seem to have moved within their version,
// if the rules are valid then.
func (c compiled) repair(old compiled, spoke *Spoke) error {
	if len(spoke.Invalid()) == 0 {
		return nil
	}
	fromMoves, err := movesIn(old.CRD, c.CRD, spoke.Version)
	if err != nil {
		return err
	}
	toMoves, err := movesIn(old.CRD, c.CRD, c.hub())
	if err != nil {
		return err
	}
	good := spoke.good()
	for i := range spoke.Rules {
		broken := &spoke.Rules[i]
		if len(broken.Errors) == 0 {
			continue
		}
		made := draft.Rule{Rule: *broken.Rule.DeepCopy(), Score: 1, Unconfirmed: true}
		made.Rule.ReplacePaths(moved(&made, spoke.Version, fromMoves), moved(&made, c.hub(), toMoves))
		if len(made.Why) > 0 && c.allows(spoke.Version, append(slices.Clip(good), made.Rule)) {
			broken.Replacement = &made
			good = append(good, made.Rule)
		}
	}
	return nil
}

// allows reports whether the rules of a spoke compile.
func (c compiled) allows(version string, rules []v1alpha1.Rule) bool {
	converter := &v1alpha1.DeclarativeConverter{
		Hub:    v1alpha1.VersionName(c.hub()),
		Spokes: []v1alpha1.Spoke{{Version: v1alpha1.VersionName(version), Rules: rules}},
	}
	return len(compile.Compile(c.CRD, converter).Errors) == 0
}

// movesIn returns moves of fields within a version by a change of its schema, from the former path to the new one.
func movesIn(before, after *apiextensionsv1.CustomResourceDefinition, version string) ([]draft.Rule, error) {
	former, _ := crds.Version(before, version)
	latter, _ := crds.Version(after, version)
	if former == nil || latter == nil || reflect.DeepEqual(former.Schema, latter.Schema) {
		return nil, nil
	}
	both := after.DeepCopy()
	both.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{*former.DeepCopy(), *latter.DeepCopy()}
	both.Spec.Versions[0].Name, both.Spec.Versions[1].Name = "before", "after"
	found, err := draft.Make(draft.Input{CRD: both, Spoke: "before", Hub: "after"})
	if err != nil {
		return nil, fmt.Errorf("compare the schemas of %s: %w", version, err)
	}
	moves := slices.DeleteFunc(found.Rules, func(rule draft.Rule) bool { return rule.Rule.Move == nil })
	// Inner fields first: a field in an object that moves may have another name, too.
	slices.SortStableFunc(moves, func(a, b draft.Rule) int { return len(b.Rule.Move.From) - len(a.Rule.Move.From) })
	return moves, nil
}

// moved returns the path that a field of a version has after moves, and notes why in the rule that names it.
func moved(made *draft.Rule, version string, moves []draft.Rule) func(v1alpha1.Path) v1alpha1.Path {
	return func(path v1alpha1.Path) v1alpha1.Path {
		for _, m := range moves {
			if isIn(string(path), string(m.Rule.Move.From)) {
				to := m.Rule.Move.To + v1alpha1.Path(strings.TrimPrefix(string(path), string(m.Rule.Move.From)))
				made.Why = append(made.Why, fmt.Sprintf("%s of %s is now %s: %s", path, version, to, strings.Join(m.Why, ", ")))
				made.Score = min(made.Score, m.Score)
				return to
			}
		}
		return path
	}
}
