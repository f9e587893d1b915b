// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// place is a field of the policy, which may be in a group of rules.
type place struct {
	path *field.Path
	// usedBy are the positions of the rules that use the group, the innermost first. It is empty outside
	// of groups.
	usedBy string
	// repeated reports whether the rule at this place only repeats, some levels below, what a rule one level above says.
	repeated bool
}

func (p place) Child(name string) place { return place{p.path.Child(name), p.usedBy, p.repeated} }
func (p place) Index(i int) place       { return place{p.path.Index(i), p.usedBy, p.repeated} }
func (p place) Key(name string) place   { return place{p.path.Key(name), p.usedBy, p.repeated} }

// String is the path, for a rule of a group with those of the rules that use it: this identifies the rule.
func (p place) String() string { return p.path.String() + p.users() }

// users says which rules use the group.
func (p place) users() string {
	if p.usedBy == "" {
		return ""
	}
	return beforeUsers + p.usedBy + ")"
}

const beforeUsers = " (used by "

// refused adds to an error about the field which rules use its group.
func (p place) refused(err *field.Error) *field.Error {
	err.Detail = strings.TrimSpace(err.Detail + p.users())
	return err
}

// group is the rules of a group that a rule uses, some levels deep in itself.
func (p place) group(i, levels int) place {
	users := shortRule(p.path.String())
	if p.usedBy != "" {
		users += ", used by " + p.usedBy
	}
	return place{groupPath(i), users, p.repeated || levels > 1}
}

// PathOf returns the path of a rule in the policy by its position, which for a rule of a group also names
// the rules that use the group.
func PathOf(position string) string {
	path, _, _ := strings.Cut(position, beforeUsers)
	return path
}

// Rule is a rule of a spoke as it is compiled. If it is one of a group, its paths are from the root of the
// object.
type Rule struct {
	v1alpha1.Rule
	// At is its position: its path in the policy, and those of the rules that use its group, if it has one.
	At string
}

// Rules returns the rules of a spoke, by its index. In place of each rule that uses a group are the rules
// of the group. Those of a group that uses itself are there for one level of objects in its object, and apply to the
// levels below as well. If the groups are not valid, which Compile says, these are missing.
func Rules(converter *v1alpha1.DeclarativeConverter, spoke int) []Rule {
	all := expand(converter).rules[spoke]
	rules := make([]Rule, 0, len(all))
	for _, rule := range all {
		if !rule.fldPath.repeated {
			rules = append(rules, Rule{rule.Rule, rule.fldPath.String()})
		}
	}
	return rules
}

// CheckGroups returns the errors of the groups of rules, and of the rules that use them, that need no schema.
func CheckGroups(converter *v1alpha1.DeclarativeConverter) field.ErrorList {
	return expand(converter).errs
}

// expansion is a policy with the rules of groups in the places where they are used.
type expansion struct {
	groups []v1alpha1.RuleGroup
	// rules are those of each spoke, recursions the uses by which groups use themselves for it.
	rules      [][]*policyRule
	recursions [][]recursion
	// uses is how many rules of one spoke use groups.
	uses int
	// used has the names of groups that a spoke uses.
	used map[v1alpha1.RuleGroupName]bool
	// tooLong reports whether the path of a use is longer than a path may be.
	tooLong bool
	errs    field.ErrorList
}

// maxUses bounds the uses of groups in a spoke: groups that use themselves several times could use each other
// without end, and without a rule.
const maxUses = 4 * v1alpha1.MaxRules

// maxPath is the length of a path that the API server accepts.
const maxPath = 1024

// expand replaces the rules that use groups. If the groups are not valid, they have no rules.
func expand(converter *v1alpha1.DeclarativeConverter) *expansion {
	x := &expansion{groups: converter.RuleGroups, used: map[v1alpha1.RuleGroupName]bool{}}
	for i, group := range x.groups {
		x.checkUses(group.Rules, groupPath(i))
	}
	valid := len(x.errs) == 0
	for i := range converter.Spokes {
		x.checkUses(converter.Spokes[i].Rules, rulesPath(i))
		x.uses, x.recursions = 0, append(x.recursions, nil)
		rules := x.expanded(nil, converter.Spokes[i].Rules, place{path: rulesPath(i)}, valid, nil)
		if x.tooMany(rules) {
			x.errs = append(x.errs, field.Invalid(rulesPath(i), len(converter.Spokes[i].Rules), fmt.Sprintf(
				"with those of the groups that they use, these are more than the %d rules that a spoke may have: use smaller groups, or at fewer paths", v1alpha1.MaxRules)))
			rules = rules[:min(len(rules), v1alpha1.MaxRules)]
		}
		x.rules = append(x.rules, rules)
	}
	return x
}

// tooMany reports whether there are more rules than a spoke may have, or more uses than maxUses.
func (x *expansion) tooMany(rules []*policyRule) bool {
	return len(rules) > v1alpha1.MaxRules || x.uses > maxUses
}

// expanded appends rules to others, with those of groups. It stops if there are too many. The rules belong to
// a group that the last of through uses, which is in a group that the use before uses.
func (x *expansion) expanded(all []*policyRule, rules []v1alpha1.Rule, at place, withGroups bool, through []*v1alpha1.UseRule) []*policyRule {
	for i, rule := range rules {
		own := at.Index(i)
		switch {
		case x.tooMany(all) || x.tooLong:
			return all
		case rule.Use == nil:
			all = append(all, newRule(rule, own))
		case withGroups:
			g := x.group(rule.Use.Group)
			if x.isCycle(rule.Use, through, own) {
				continue
			}
			levels := x.recurse(rule.Use, through)
			if x.uses++; g < 0 || levels > maxDepth {
				continue
			}
			x.used[rule.Use.Group] = true
			if x.tooLong = max(len(rule.Use.From), len(rule.Use.To)) > maxPath; x.tooLong {
				x.errs = append(x.errs, own.refused(field.TooLong(own.Child("use").path, "", maxPath)))
				return all
			}
			all = x.expanded(all, within(rule.Use, x.groups[g].Rules), own.group(g, levels), true, append(slices.Clip(through), rule.Use))
		}
	}
	return all
}

// group returns the index of a group, negative if there is none.
func (x *expansion) group(name v1alpha1.RuleGroupName) int {
	return slices.IndexFunc(x.groups, func(group v1alpha1.RuleGroup) bool { return group.Name == name })
}

func groupPath(group int) *field.Path {
	return declarativePath.Child("ruleGroups").Index(group).Child("rules")
}

// within returns rules of a group with the paths of a use in front of theirs.
func within(use *v1alpha1.UseRule, rules []v1alpha1.Rule) []v1alpha1.Rule {
	after := func(prefix v1alpha1.Path) func(v1alpha1.Path) v1alpha1.Path {
		return func(path v1alpha1.Path) v1alpha1.Path { return prefix + path }
	}
	within := make([]v1alpha1.Rule, len(rules))
	for i := range rules {
		rules[i].DeepCopyInto(&within[i])
		if inner := within[i].Use; inner != nil {
			inner.From, inner.To = use.From+inner.From, use.To+inner.To
			continue
		}
		within[i].ReplacePaths(after(use.From), after(use.To))
	}
	return within
}

// checkUses checks that the groups exist that rules use.
func (x *expansion) checkUses(rules []v1alpha1.Rule, at *field.Path) {
	for i, rule := range rules {
		if rule.Use == nil {
			continue
		}
		if own := at.Index(i).Child("use"); x.group(rule.Use.Group) < 0 {
			x.errs = append(x.errs, field.Invalid(own.Child("group"), rule.Use.Group, "is no group of ruleGroups, which has "+x.names()+": correct the name, or add the group"))
		}
	}
}

func (x *expansion) names() string {
	var names []string
	for _, group := range x.groups {
		names = append(names, string(group.Name))
	}
	if len(names) == 0 {
		return "none"
	}
	return few(names)
}

// isCycle reports whether a group uses itself for the same object, by the uses that have led to this one, and refuses that.
func (x *expansion) isCycle(use *v1alpha1.UseRule, through []*v1alpha1.UseRule, at place) bool {
	from := slices.IndexFunc(through, func(outer *v1alpha1.UseRule) bool { return outer.Group == use.Group && outer.From == use.From })
	if from < 0 {
		return false
	}
	var names []string
	for _, outer := range append(slices.Clip(through[from:]), use) {
		names = append(names, string(outer.Group))
	}
	err := field.Invalid(at.Child("use").Child("group").path, string(use.Group),
		"the group uses itself for the same object: "+strings.Join(names, " → ")+": remove one of these rules, or set from and to")
	if !slices.ContainsFunc(x.errs, func(other *field.Error) bool { return other.Error() == err.Error() }) {
		x.errs = append(x.errs, err)
	}
	return true
}

// unused returns warnings about groups whose rules convert nothing.
func (x *expansion) unused() (warnings []string) {
	for _, group := range x.groups {
		if !x.used[group.Name] {
			warnings = append(warnings, fmt.Sprintf("no spoke uses the group %s: its rules convert nothing, and are not checked; use it in a rule, or remove it", group.Name))
		}
	}
	return warnings
}
