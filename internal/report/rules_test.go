// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"reflect"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// TestEveryKindOfRule checks that the report describes each kind of rule under its name. A use is the rules of its
// group.
func TestEveryKindOfRule(t *testing.T) {
	for member := range reflect.TypeFor[v1alpha1.Rule]().Fields() {
		want, _, _ := strings.Cut(member.Tag.Get("json"), ",")
		if got := kinds[want]; want != "use" && (got.Name != want || got.Does == "") {
			t.Errorf("rules.go describes a rule %s as %q: %q", want, got.Name, got.Does)
		}
	}
}

// TestRulesOfGroups: a rule of a group is in the report for each use, with the paths there.
func TestRulesOfGroups(t *testing.T) {
	policy := &v1alpha1.ConversionPolicy{}
	policy.Spec.Converter.Declarative = &v1alpha1.DeclarativeConverter{
		RuleGroups: []v1alpha1.RuleGroup{{Name: "a", Rules: []v1alpha1.Rule{{Move: &v1alpha1.MoveRule{From: ".b", To: ".c"}}}}},
		Spokes: []v1alpha1.Spoke{{Version: "v1", Rules: []v1alpha1.Rule{
			{Drop: &v1alpha1.DropRule{From: ".z"}},
			{Use: &v1alpha1.UseRule{Group: "a", From: ".x", To: ".x"}}, {Use: &v1alpha1.UseRule{Group: "a", From: ".y[*]", To: ".y[*]"}},
		}}},
	}
	want := []rule{
		{kinds["drop"], "v1", 1, "spec.converter.declarative.spokes[0].rules[0]", "drop:\n  from: .z\n"},
		{kinds["move"], "v1", 2, "spec.converter.declarative.ruleGroups[0].rules[0] (used by spokes[0].rules[1])", "move:\n  from: .x.b\n  to: .x.c\n"},
		{kinds["move"], "v1", 3, "spec.converter.declarative.ruleGroups[0].rules[0] (used by spokes[0].rules[2])", "move:\n  from: .y[*].b\n  to: .y[*].c\n"},
	}
	var got []rule
	for _, one := range rulesOf(policy)[0].Rules {
		got = append(got, *one)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the rules are %+v, want %+v", got, want)
	}
}
