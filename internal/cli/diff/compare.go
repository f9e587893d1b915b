// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds/restrict"
)

// Format is raised when a reader of an older Report would misread it. New fields
// do not raise it.
const Format = 1

// Side is a policy and its CustomResourceDefinition, before a change or after it.
type Side struct {
	// Policy is nil if there is none yet.
	Policy *v1alpha1.ConversionPolicy
	CRD    *apiextensionsv1.CustomResourceDefinition
	// Objects are checked for preserved data, only after the change. Objects of other
	// kinds are ignored.
	Objects []manifest.Object
}

// Report lists what changes for some policies. Its JSON form is stable.
type Report struct {
	// Format is the constant Format.
	Format   int      `json:"format"`
	Policies []Policy `json:"policies"`
}

// Worse reports whether any policy gets worse.
func (r *Report) Worse() bool {
	return slices.ContainsFunc(r.Policies, func(policy Policy) bool { return policy.Worse })
}

// Policy lists what changes for one policy.
type Policy struct {
	Name string `json:"name"`
	// New is true if there was no policy before.
	New bool `json:"new,omitempty"`
	// Worse is true if data is lost that was not lost before, if a field accepts fewer values, if
	// requests of clients fail, or if the rules are no longer valid.
	Worse bool `json:"worse"`
	// RulesetBefore and RulesetAfter are the ruleset hashes, empty without rules. If
	// they are equal, converter pods do not change.
	RulesetBefore string `json:"rulesetBefore,omitempty"`
	RulesetAfter  string `json:"rulesetAfter,omitempty"`
	// Errors are the reasons why the rules are not valid after the change.
	Errors []string `json:"errors,omitempty"`
	// HubBefore and HubAfter are set if the hub changes.
	HubBefore string `json:"hubBefore,omitempty"`
	HubAfter  string `json:"hubAfter,omitempty"`
	// VersionsAdded and VersionsRemoved are versions of the CustomResourceDefinition.
	VersionsAdded   []string `json:"versionsAdded,omitempty"`
	VersionsRemoved []string `json:"versionsRemoved,omitempty"`
	// Restrictions are fields that accept fewer values than before: API servers refuse or prune
	// the others when objects are written.
	Restrictions []restrict.Restriction `json:"restrictions,omitempty"`
	// Losses are subresources, selectable fields, columns and names that clients no longer find.
	Losses []crds.Loss `json:"losses,omitempty"`
	// Directions whose verdict changes.
	Directions []Direction `json:"directions,omitempty"`
	// Fields whose owner or rule changes.
	Fields []Field `json:"fields,omitempty"`
	// Preserved are the fields whose preserved values become data, and those that will
	// be preserved.
	Preserved []Preserved `json:"preserved,omitempty"`
	// Spokes are those whose rules a change of the schemas affects, with drafts of missing rules.
	Spokes []Spoke `json:"spokes,omitempty"`
	// Warnings are new warnings of the compiler.
	Warnings []string `json:"warnings,omitempty"`
}

// Direction is a conversion between a spoke and the hub.
type Direction struct {
	From   string            `json:"from"`
	To     string            `json:"to"`
	Before v1alpha1.Fidelity `json:"before"`
	After  v1alpha1.Fidelity `json:"after"`
	Worse  bool              `json:"worse"`
}

// compiled is a side with its compiled rules.
type compiled struct {
	Side
	result compile.Result
	errors []string
	leaves map[key]*Leaf
}

func compileSide(side Side) compiled {
	c := compiled{Side: side, leaves: map[key]*Leaf{}}
	if side.Policy == nil {
		return c
	}
	rules := side.Policy.Spec.Converter.Declarative
	if rules == nil {
		c.errors = []string{"spec.converter.declarative: the policy has no rules to compare: only this kind of converter has rules"}
		return c
	}
	c.result = crds.CompileRules(side.CRD, rules)
	for _, err := range c.result.Errors {
		c.errors = append(c.errors, err.Error())
	}
	c.leaves = c.leavesByKey()
	return c
}

// hub is empty without rules.
func (c compiled) hub() string {
	if c.Policy == nil || c.Policy.Spec.Converter.Declarative == nil {
		return ""
	}
	return string(c.Policy.Spec.Converter.Declarative.Hub)
}

func (c compiled) hash() string {
	if c.result.Ruleset == nil {
		return ""
	}
	return c.result.Ruleset.Hash()
}

func (c compiled) convertsAny() bool {
	return c.result.Ruleset != nil && len(c.result.Ruleset.Versions) > 1
}

// unknownVersions returns the errors about versions for which conversions stop, and that the
// CustomResourceDefinition had not before the change either: it does not retire them.
func (c compiled) unknownVersions(old compiled) (errors []string) {
	if !old.convertsAny() || c.convertsAny() {
		return nil
	}
	for _, err := range c.result.Missing {
		if !slices.Contains(old.versions(), fmt.Sprint(err.BadValue)) {
			errors = append(errors, err.Error())
		}
	}
	return errors
}

// versions returns the versions of the CustomResourceDefinition, sorted.
func (c compiled) versions() []string {
	var names []string
	for _, version := range c.CRD.Spec.Versions {
		names = append(names, version.Name)
	}
	slices.Sort(names)
	return names
}

// Compare compares conversions before and after a change. It returns an error if the rules
// before the change are not valid.
func Compare(before, after Side) (Policy, error) {
	old, next := compileSide(before), compileSide(after)
	next.errors = append(next.errors, next.unknownVersions(old)...)
	policy := Policy{
		Name: after.Policy.Name, New: before.Policy == nil, RulesetBefore: old.hash(), RulesetAfter: next.hash(),
		VersionsAdded: without(next.versions(), old.versions()), VersionsRemoved: without(old.versions(), next.versions()),
		Errors: next.errors, Restrictions: restrict.Find(before.CRD, after.CRD), Losses: crds.Losses(before.CRD, after.CRD), Worse: len(next.errors) > 0,
	}
	if len(old.errors) > 0 {
		return policy, fmt.Errorf("%s: the previous rules are not valid: %s", policy.Name, old.errors[0])
	}
	var err error
	if policy.Spokes, err = affectedSpokes(old, next); err != nil {
		return policy, fmt.Errorf("%s: %w", policy.Name, err)
	}
	if len(next.errors) > 0 {
		return policy, nil
	}
	if old.hub() != next.hub() && !policy.New {
		policy.HubBefore, policy.HubAfter = old.hub(), next.hub()
	}
	policy.Directions = directionChanges(old, next)
	policy.Fields = fieldChanges(old, next)
	if policy.Preserved, err = preservedChanges(old, next, after.Objects); err != nil {
		return policy, err
	}
	policy.Warnings = without(next.result.Warnings, old.result.Warnings)
	policy.Worse = len(policy.Restrictions) > 0 || slices.ContainsFunc(policy.Losses, crds.Loss.Breaks) || slices.ContainsFunc(policy.Fields, func(field Field) bool { return field.Worse }) ||
		slices.ContainsFunc(policy.Directions, func(direction Direction) bool { return direction.Worse })
	return policy, nil
}

// without returns the names that are not among others.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}

// fidelities returns the verdicts of all directions.
func (c compiled) fidelities() map[[2]string]v1alpha1.Fidelity {
	found := map[[2]string]v1alpha1.Fidelity{}
	for _, verdict := range c.result.Verdicts {
		found[[2]string{verdict.Version, c.hub()}] = verdict.ToHub
		found[[2]string{c.hub(), verdict.Version}] = verdict.FromHub
	}
	return found
}

func directionChanges(old, next compiled) []Direction {
	var changed []Direction
	was, now := old.fidelities(), next.fidelities()
	for _, pair := range slices.SortedFunc(maps.Keys(now), func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	}) {
		before, known := was[pair]
		if !known || before == now[pair] {
			continue
		}
		changed = append(changed, Direction{
			From: pair[0], To: pair[1], Before: before, After: now[pair],
			// To preserve more is a change that loses nothing.
			Worse: now[pair] == v1alpha1.FidelityLossy,
		})
	}
	return changed
}
