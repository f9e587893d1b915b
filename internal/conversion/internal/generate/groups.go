// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// Grouped returns the same rules in the same order, many of them in groups that others use.
func (c *Choices) Grouped(converter *v1alpha1.DeclarativeConverter) *v1alpha1.DeclarativeConverter {
	g := grouper{Choices: c}
	grouped := converter.DeepCopy()
	for i := range grouped.Spokes {
		grouped.Spokes[i].Rules = g.rules(grouped.Spokes[i].Rules, 0)
	}
	grouped.RuleGroups = g.groups
	return grouped
}

type grouper struct {
	*Choices
	groups []v1alpha1.RuleGroup
}

// rules replaces some rules by those that use groups, which have groups in them up to a depth.
func (g *grouper) rules(rules []v1alpha1.Rule, depth int) (grouped []v1alpha1.Rule) {
	for len(rules) > 0 {
		if depth > 2 || g.Rarely(3) {
			grouped, rules = append(grouped, rules[0]), rules[1:]
			continue
		}
		from, to := g.around(&rules[0])
		most := slices.IndexFunc(rules, func(rule v1alpha1.Rule) bool { return !isBelow(&rule, from, to) })
		if most < 0 {
			most = len(rules)
		}
		n := 1 + g.IntN(most)
		inner := make([]v1alpha1.Rule, n)
		for i := range inner {
			inner[i] = *rules[i].DeepCopy()
			inner[i].ReplacePaths(without(from), without(to))
		}
		use := &v1alpha1.UseRule{Group: g.group(g.rules(inner, depth+1)), From: from, To: to}
		grouped, rules = append(grouped, v1alpha1.Rule{Use: use}), rules[n:]
	}
	return grouped
}

// group returns the name of a group with these rules.
func (g *grouper) group(rules []v1alpha1.Rule) v1alpha1.RuleGroupName {
	i := slices.IndexFunc(g.groups, func(group v1alpha1.RuleGroup) bool { return reflect.DeepEqual(group.Rules, rules) })
	if i < 0 {
		i = len(g.groups)
		g.groups = append(g.groups, v1alpha1.RuleGroup{Name: v1alpha1.RuleGroupName(fmt.Sprintf("g%d", i)), Rules: rules})
	}
	return g.groups[i].Name
}

// around returns the paths of an object in both versions that has all fields of a rule, or none for the whole
// object. If the rule is for one version, the path in the other one does not matter.
func (g *grouper) around(rule *v1alpha1.Rule) (from, to v1alpha1.Path) {
	spoke, hub := rule.Paths()
	from, to = g.prefix(spoke), g.prefix(hub)
	switch {
	case len(spoke) == 0:
		from = to
	case len(hub) == 0:
		to = from
	case from == "" || to == "":
		return "", ""
	}
	return from, to
}

// segments are what a path has one after the other.
var segments = regexp.MustCompile(`\.[^.\["]+|\["[^"]*"\]|\[\*\]`)

// prefix returns one of the paths that are in front of all paths.
func (g *grouper) prefix(paths []v1alpha1.Path) v1alpha1.Path {
	if len(paths) == 0 {
		return ""
	}
	var prefixes []v1alpha1.Path
	var prefix v1alpha1.Path
	for _, segment := range segments.FindAllString(string(paths[0]), -1) {
		prefix += v1alpha1.Path(segment)
		if areBelow(paths, prefix) {
			prefixes = append(prefixes, prefix)
		}
	}
	if len(prefixes) == 0 {
		return ""
	}
	return One(g.Choices, prefixes...)
}

func isBelow(rule *v1alpha1.Rule, from, to v1alpha1.Path) bool {
	spoke, hub := rule.Paths()
	return areBelow(spoke, from) && areBelow(hub, to)
}

// areBelow reports whether all paths name fields of the object with a path, or of one in it.
func areBelow(paths []v1alpha1.Path, object v1alpha1.Path) bool {
	return !slices.ContainsFunc(paths, func(path v1alpha1.Path) bool {
		rest, found := strings.CutPrefix(string(path), string(object))
		return !found || object != "" && !strings.HasPrefix(rest, ".")
	})
}

func without(prefix v1alpha1.Path) func(v1alpha1.Path) v1alpha1.Path {
	return func(path v1alpha1.Path) v1alpha1.Path { return path[len(prefix):] }
}

// GroupsOf counts the groups of rules, and the rules that use them.
func GroupsOf(converter *v1alpha1.DeclarativeConverter) (groups, uses int) {
	all := [][]v1alpha1.Rule{}
	for _, spoke := range converter.Spokes {
		all = append(all, spoke.Rules)
	}
	for _, group := range converter.RuleGroups {
		all = append(all, group.Rules)
	}
	for _, rules := range all {
		for _, rule := range rules {
			if rule.Use != nil {
				uses++
			}
		}
	}
	return len(converter.RuleGroups), uses
}
