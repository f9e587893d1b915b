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
	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
)

// Format is raised when a reader of an older Report would misread it. New fields
// do not raise it.
const Format = 1

// Side is a policy and its CustomResourceDefinition, before a change or after it.
type Side struct {
	// Policy is nil before there was any.
	Policy *v1alpha1.ConversionPolicy
	CRD    *apiextensionsv1.CustomResourceDefinition
	// Objects are looked at for preserved data, after a change only. Those of other
	// kinds are left alone.
	Objects []any
}

// Report is what changes for some policies. Its JSON form is stable.
type Report struct {
	// Format is the constant of that name.
	Format   int      `json:"format"`
	Policies []Policy `json:"policies"`
}

// Worse tells whether something gets worse.
func (r *Report) Worse() bool {
	return slices.ContainsFunc(r.Policies, func(policy Policy) bool { return policy.Worse })
}

// Policy is what changes for one of them.
type Policy struct {
	Name string `json:"name"`
	// New tells that there was no policy before.
	New bool `json:"new,omitempty"`
	// Worse tells that something is lost that was not, or that the rules do not fit
	// any more.
	Worse bool `json:"worse"`
	// RulesetBefore and RulesetAfter identify the compiled rules, where there are any.
	// If they are equal, converter pods do not change.
	RulesetBefore string `json:"rulesetBefore,omitempty"`
	RulesetAfter  string `json:"rulesetAfter,omitempty"`
	// Errors are why the rules do not fit after the change.
	Errors []string `json:"errors,omitempty"`
	// HubBefore and HubAfter are there where the hub is another one.
	HubBefore string `json:"hubBefore,omitempty"`
	HubAfter  string `json:"hubAfter,omitempty"`
	// VersionsAdded and VersionsRemoved are those that are converted.
	VersionsAdded   []string `json:"versionsAdded,omitempty"`
	VersionsRemoved []string `json:"versionsRemoved,omitempty"`
	// Directions whose verdict is another one.
	Directions []Direction `json:"directions,omitempty"`
	// Fields whose owner or rule is another one.
	Fields []Field `json:"fields,omitempty"`
	// Preserved are the fields of which objects may preserve values that become data,
	// and those that will be preserved.
	Preserved []Preserved `json:"preserved,omitempty"`
	// Warnings of the compiler that are new.
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

// compiled is a side with what its rules mean.
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
	c.result = compile.Compile(side.CRD, rules)
	for _, err := range c.result.Errors {
		c.errors = append(c.errors, err.Error())
	}
	c.leaves = c.newLeaves()
	return c
}

// hub is empty where there are no rules.
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

// versions are those of the CustomResourceDefinition.
func (c compiled) versions() []string {
	var names []string
	for _, version := range c.CRD.Spec.Versions {
		names = append(names, version.Name)
	}
	slices.Sort(names)
	return names
}

// Compare says what a change does. It returns an error where there was nothing to
// compare with: rules that did not fit before.
func Compare(before, after Side) (Policy, error) {
	old, next := compileSide(before), compileSide(after)
	policy := Policy{
		Name: after.Policy.Name, New: before.Policy == nil, RulesetBefore: old.hash(), RulesetAfter: next.hash(),
		VersionsAdded: missing(next.versions(), old.versions()), VersionsRemoved: missing(old.versions(), next.versions()),
		Errors: next.errors, Worse: len(next.errors) > 0,
	}
	if len(old.errors) > 0 {
		return policy, fmt.Errorf("%s: the previous rules are not valid: %s", policy.Name, old.errors[0])
	}
	if len(next.errors) > 0 {
		return policy, nil
	}
	if old.hub() != next.hub() && !policy.New {
		policy.HubBefore, policy.HubAfter = old.hub(), next.hub()
	}
	policy.Directions = directions(old, next)
	policy.Fields = fields(old, next)
	var err error
	if policy.Preserved, err = preserving(old, next, after.Objects); err != nil {
		return policy, err
	}
	policy.Warnings = missing(next.result.Warnings, old.result.Warnings)
	policy.Worse = slices.ContainsFunc(policy.Fields, func(field Field) bool { return field.Worse }) ||
		slices.ContainsFunc(policy.Directions, func(direction Direction) bool { return direction.Worse })
	return policy, nil
}

// missing are the names of one list that another lacks.
func missing(of, in []string) []string {
	var found []string
	for _, name := range of {
		if !slices.Contains(in, name) {
			found = append(found, name)
		}
	}
	return found
}

// fidelities are the verdicts of all directions.
func (c compiled) fidelities() map[[2]string]v1alpha1.Fidelity {
	found := map[[2]string]v1alpha1.Fidelity{}
	for _, verdict := range c.result.Verdicts {
		found[[2]string{verdict.Version, c.hub()}] = verdict.ToHub
		found[[2]string{c.hub(), verdict.Version}] = verdict.FromHub
	}
	return found
}

// worst is the order of fidelities, the best first.
var worst = []v1alpha1.Fidelity{v1alpha1.FidelityExact, v1alpha1.FidelityPreserved, v1alpha1.FidelityLossy}

func directions(old, next compiled) []Direction {
	var changed []Direction
	was, is := old.fidelities(), next.fidelities()
	for _, pair := range slices.SortedFunc(maps.Keys(is), func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	}) {
		before, known := was[pair]
		if !known || before == is[pair] {
			continue
		}
		changed = append(changed, Direction{
			From: pair[0], To: pair[1], Before: before, After: is[pair],
			// More is preserved, and nothing is lost: that is a change, and no harm.
			Worse: is[pair] == v1alpha1.FidelityLossy && slices.Index(worst, is[pair]) > slices.Index(worst, before),
		})
	}
	return changed
}
