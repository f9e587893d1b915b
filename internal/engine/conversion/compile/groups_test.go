// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

const (
	groupsSpoke = `one: {type: object, properties: {name: {type: string}, sort: {type: string}}},
		many: {type: array, items: {type: object, properties: {ref: {type: object, properties: {name: {type: string}, sort: {type: string}}}, old: {type: string}}}},
		name: {type: string}, sort: {type: string}`
	groupsHub = `one: {type: object, properties: {id: {type: string}, class: {type: string}}},
		many: {type: array, items: {type: object, properties: {ref: {type: object, properties: {id: {type: string}, class: {type: string}}}, new: {type: string}}}},
		id: {type: string}, class: {type: string}`
	refGroup = `{name: ref, rules: [{move: {from: .name, to: .id}}, {values: {from: .sort, to: .class, table: [{from: a, to: b}]}}]}`
)

func grouped(t *testing.T, groups, rules string) (*v1alpha1.DeclarativeConverter, Result) {
	t.Helper()
	converter := from[v1alpha1.DeclarativeConverter](t, "{hub: v2, ruleGroups: ["+groups+"], spokes: [{version: v1, rules: ["+rules+"]}]}")
	spoke, hub := strings.ReplaceAll(groupsSpoke, "\t", " "), strings.ReplaceAll(groupsHub, "\t", " ")
	return converter, Compile(widgets(t, map[string]string{"v1": spoke, "v2": hub}), converter)
}

// TestGroups: the rules of a group are compiled at each path where a rule uses the group, with positions that
// name both.
func TestGroups(t *testing.T) {
	converter, result := grouped(t, `{name: item, rules: [{use: {group: ref, from: .ref, to: .ref}}, {move: {from: .old, to: .new}}]}, `+refGroup,
		`{use: {group: ref, from: .one, to: .one}}, {use: {group: item, from: ".many[*]", to: ".many[*]"}}, {use: {group: ref}}`)
	converterOf(t, result)
	var got []string
	for _, rule := range Rules(converter, 0) {
		spoke, hub := rule.Paths()
		got = append(got, fmt.Sprint(shortRule(rule.At), ": ", spoke, " ", hub))
	}
	want := []string{
		"ruleGroups[1].rules[0] (used by spokes[0].rules[0]): [.one.name] [.one.id]",
		"ruleGroups[1].rules[1] (used by spokes[0].rules[0]): [.one.sort] [.one.class]",
		"ruleGroups[1].rules[0] (used by ruleGroups[0].rules[0], used by spokes[0].rules[1]): [.many[*].ref.name] [.many[*].ref.id]",
		"ruleGroups[1].rules[1] (used by ruleGroups[0].rules[0], used by spokes[0].rules[1]): [.many[*].ref.sort] [.many[*].ref.class]",
		"ruleGroups[0].rules[1] (used by spokes[0].rules[1]): [.many[*].old] [.many[*].new]",
		"ruleGroups[1].rules[0] (used by spokes[0].rules[2]): [.name] [.id]",
		"ruleGroups[1].rules[1] (used by spokes[0].rules[2]): [.sort] [.class]",
	}
	expect.Equal(t, "rules", want, got)
	for _, leaf := range result.Leaves {
		if leaf.Owner != OwnerExact || !slices.ContainsFunc(Rules(converter, 0), func(rule Rule) bool { return rule.At == leaf.Rule }) {
			t.Errorf("%s is %s by %q", leaf, leaf.Owner, leaf.Rule)
		}
	}
	expect.Equal(t, "the path of the first rule", "spec.converter.declarative.ruleGroups[1].rules[0]", PathOf(Rules(converter, 0)[0].At))
	expect.Equal(t, "path in the group, which must not change", ".name", converter.RuleGroups[1].Rules[0].Move.From)
}

// TestGroupErrors: an error names the rule of the group, and the rule that uses the group.
func TestGroupErrors(t *testing.T) {
	use := func(group string) string { return "{use: {group: " + group + ", from: .one, to: .one}}" }
	for name, test := range map[string]struct{ groups, rules, want string }{
		"no such group": {refGroup, use("reference"),
			`spec.converter.declarative.spokes[0].rules[0].use.group: Invalid value: "reference": is no group of ruleGroups, which has ref: correct the name, or add the group`},
		"no group at all": {"", use("ref"),
			`spec.converter.declarative.spokes[0].rules[0].use.group: Invalid value: "ref": is no group of ruleGroups, which has none: correct the name, or add the group`},
		"no such group in a group": {`{name: a, rules: [` + use("b") + `]}`, use("a"),
			`spec.converter.declarative.ruleGroups[0].rules[0].use.group: Invalid value: "b": is no group of ruleGroups, which has a: correct the name, or add the group`},
		"a group in itself": {`{name: a, rules: [{use: {group: a}}]}`, use("a"),
			`spec.converter.declarative.ruleGroups[0].rules[0].use.group: Invalid value: "a": the group uses itself for the same object: a → a: remove one of these rules, or set from and to`},
		"a cycle": {`{name: x, rules: [` + use("a") + `]}, {name: a, rules: [{drop: {from: .sort}}, {use: {group: b}}]}, {name: b, rules: [{use: {group: a}}, {drop: {from: .name}}]}`, use("x"),
			`spec.converter.declarative.ruleGroups[2].rules[0].use.group: Invalid value: "a": the group uses itself for the same object: a → b → a: remove one of these rules, or set from and to`},
		"recursion through a field that is not there": {`{name: a, rules: [{move: {from: .name, to: .id}}, ` + use("a") + `]}`, use("a"),
			`spec.converter.declarative.ruleGroups[0].rules[0].move.from: Invalid value: ".one.one.name": version v1: .one has no field one in the schema: did you mean .one? (used by ruleGroups[0].rules[1], used by spokes[0].rules[0])`},
		"a field that is not there": {`{name: a, rules: [{move: {from: .nam, to: .id}}]}`, use("a"),
			`spec.converter.declarative.ruleGroups[0].rules[0].move.from: Invalid value: ".one.nam": version v1: .one has no field nam in the schema: did you mean .one.name? (used by spokes[0].rules[0])`},
		"a use at the wrong path": {refGroup, `{use: {group: ref, from: .two, to: .one}}`,
			`spec.converter.declarative.ruleGroups[0].rules[0].move.from: Invalid value: ".two.name": version v1: the object has no field two in the schema, it has many, name, one, sort: correct the path (used by spokes[0].rules[0])`},
		"one path twice": {refGroup, use("ref") + ", {drop: {from: .one.sort}}, " + use("ref"),
			`spec.converter.declarative.spokes[0].rules[1].drop.from: Invalid value: ".one.sort": .one.sort already belongs to spec.converter.declarative.ruleGroups[0].rules[1].values.from (used by spokes[0].rules[0]): give every field to one rule`},
		"the same pair twice": {`{name: a, rules: [{values: {from: .sort, to: .class, table: [{from: a, to: b}, {from: a, to: b}]}}]}`, use("a"),
			`spec.converter.declarative.ruleGroups[0].rules[0].values.table[1]: Duplicate value: {"from":"a","to":"b"}: (used by spokes[0].rules[0])`},
		"an expression for no field": {`{name: a, rules: [{cel: {from: {n: .name}, to: {i: .id}, forward: {i: self.n}, backward: {n: self.i, x: self.i}}}]}`, use("a"),
			`spec.converter.declarative.ruleGroups[0].rules[0].cel.backward[x]: Invalid value: "self.i": computes a field that spec.converter.declarative.ruleGroups[0].rules[0].cel.from does not name: add the field there, or remove this expression (used by spokes[0].rules[0])`},
		"too many rules": {`{name: a, rules: [` + repeated("{drop: {from: .a%d}}", 16) + `]}, {name: b, rules: [` + repeated("{use: {group: a, from: .b%d, to: .c}}", 16) + `]}`,
			"{drop: {from: .name}}, " + use("b"),
			`spec.converter.declarative.spokes[0].rules: Invalid value: 2: with those of the groups that they use, these are more than the 256 rules that a spoke may have: use smaller groups, or at fewer paths`},
		"too long a path": {`{name: a, rules: [{use: {group: ref, from: ` + longPath + `, to: .c}}]}, ` + refGroup, `{use: {group: a, from: ` + longPath + `, to: .c}}`,
			`spec.converter.declarative.ruleGroups[0].rules[0].use: Too long: may not be more than 1024 bytes (used by spokes[0].rules[0])`},
	} {
		t.Run(name, func(t *testing.T) {
			converter, result := grouped(t, test.groups, test.rules)
			if result.Ruleset != nil || len(result.Errors) == 0 {
				t.Fatalf("the rules compile, errors: %v", result.Errors)
			}
			var errs []string
			for _, err := range result.Errors {
				errs = append(errs, err.Error())
			}
			if !slices.Contains(errs, test.want) {
				t.Errorf("the errors are\n%s\nwant\n%s", strings.Join(errs, "\n"), test.want)
			}
			if n := len(Rules(converter, 0)); n > v1alpha1.MaxRules {
				t.Errorf("there are %d rules", n)
			}
		})
	}
}

var longPath = "." + strings.Repeat("a", 600)

func repeated(rule string, n int) string {
	var rules []string
	for i := range n {
		rules = append(rules, fmt.Sprintf(rule, i))
	}
	return strings.Join(rules, ", ")
}

// TestHostileGroups: what would be an enormous number of rules ends soon.
func TestHostileGroups(t *testing.T) {
	var groups []string
	for i := range 63 {
		next := fmt.Sprintf("g%d", i+1)
		groups = append(groups, fmt.Sprintf("{name: g%d, rules: [%s]}", i, repeated("{use: {group: "+next+", from: .a%d, to: .b}}", 256)))
	}
	last := "{name: g63, rules: [{drop: {from: .x}}]}"
	_, result := grouped(t, strings.Join(groups, ", ")+", "+last, "{use: {group: g0}}")
	expect.Equal(t, "number of errors", 1, len(result.Errors))
	expect.Contains(t, "errors", fmt.Sprint(result.Errors), "more than the 256 rules")
	_, result = grouped(t, strings.Join(groups, ", ")+", {name: g63, rules: ["+repeated("{use: {group: g62, from: .a%d, to: .b}}", 256)+"]}", "{use: {group: g0}}")
	expect.Equal(t, "number of errors of groups that use each other", 1, len(result.Errors))
	expect.Contains(t, "errors of groups that use each other", fmt.Sprint(result.Errors), "more than the 256 rules")
}

// TestRecursion: of the rules of a group that uses itself, and of the fields for which it does, users see one level.
func TestRecursion(t *testing.T) {
	const node = `node: {type: object, properties: {%s: {type: string, maxLength: 5}, children: {%s}}}`
	rules := `{name: node, rules: [{move: {from: .old, to: .new}}, {use: {group: node, from: ".children[*]", to: ".children[*]"}}]}`
	for _, children := range []string{
		"type: array, items: {x-kubernetes-preserve-unknown-fields: true}",
		"type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}",
		"type: object, additionalProperties: {x-kubernetes-preserve-unknown-fields: true}",
		"x-kubernetes-preserve-unknown-fields: true",
	} {
		crd := widgets(t, map[string]string{"v1": fmt.Sprintf(node, "old", children), "v2": fmt.Sprintf(node, "new", children)})
		converter := from[v1alpha1.DeclarativeConverter](t, "{hub: v2, ruleGroups: ["+rules+"], spokes: [{version: v1, rules: [{use: {group: node, from: .node, to: .node}}]}]}")
		result := Compile(crd, converter)
		converterOf(t, result)
		var got []string
		for _, leaf := range result.Leaves {
			got = append(got, leaf.String()+" "+string(leaf.Owner))
		}
		want := []string{"v1:.node.children[*].old Exact", "v1:.node.old Exact", "v2:.node.children[*].new Exact", "v2:.node.new Exact"}
		expect.Equal(t, children+": the fields", want, got)
		if rules := Rules(converter, 0); len(rules) != 2 || len(result.Warnings) > 0 {
			t.Errorf("%s: the rules are %v, the warnings %q", children, rules, result.Warnings)
		}
	}
}

// TestRecursionInRecursion: the rule of each field that users see is one that they see.
func TestRecursionInRecursion(t *testing.T) {
	const outer = `outer: {type: object, properties: {%[1]s: {type: string}, inner: {type: object, properties: {%[1]s: {type: string}, all: {type: array, items: {x-kubernetes-preserve-unknown-fields: true}}}},
		children: {type: array, items: {x-kubernetes-preserve-unknown-fields: true}}}}`
	converter := from[v1alpha1.DeclarativeConverter](t, strings.ReplaceAll(`{hub: v2, spokes: [{version: v1, rules: [{use: {group: outer, from: .outer, to: .outer}}]}], ruleGroups: [
		{name: inner, rules: [{move: {from: .old, to: .new}}, {use: {group: inner, from: ".all[*]", to: ".all[*]"}}]},
		{name: outer, rules: [{move: {from: .old, to: .new}}, {use: {group: inner, from: .inner, to: .inner}}, {use: {group: outer, from: ".children[*]", to: ".children[*]"}}]}]}`, "\t", ""))
	schema := func(field string) string { return strings.ReplaceAll(fmt.Sprintf(outer, field), "\t", "") }
	result := Compile(widgets(t, map[string]string{"v1": schema("old"), "v2": schema("new")}), converter)
	converterOf(t, result)
	shown := 0
	for _, leaf := range result.Leaves {
		if shown++; !slices.ContainsFunc(Rules(converter, 0), func(rule Rule) bool { return rule.At == leaf.Rule }) {
			t.Errorf("%s is by %s, which is no rule", leaf, leaf.Rule)
		}
	}
	expect.Equal(t, "number of shown fields", 2*len(Rules(converter, 0)), shown)
}

// TestUnusedGroups: a group that no spoke uses is a warning, also if another such group uses it.
func TestUnusedGroups(t *testing.T) {
	_, result := grouped(t, refGroup+", {name: a, rules: [{use: {group: b, from: .x, to: .x}}]}, {name: b, rules: [{drop: {from: .wrong}}]}", "{use: {group: ref, from: .one, to: .one}}")
	converterOf(t, result)
	for _, name := range []string{"a", "b"} {
		want := "no spoke uses the group " + name + ": its rules convert nothing, and are not checked; use it in a rule, or remove it"
		if !slices.Contains(result.Warnings, want) {
			t.Errorf("the warnings are %q, want %s", result.Warnings, want)
		}
	}
	if slices.ContainsFunc(result.Warnings, func(warning string) bool { return strings.Contains(warning, "group ref") }) {
		t.Errorf("the warnings are %q", result.Warnings)
	}
}
