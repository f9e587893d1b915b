// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package playground

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestCheck(t *testing.T) {
	in := Sample()
	in.Objects += "---\napiVersion: v1\nkind: Secret\nmetadata: {name: other}\n"
	checked := Check(t.Context(), in)
	expect.Equal(t, "problems, outcome, hub, versions", "[] Passed v2 [v1 v2]",
		fmt.Sprintf("%+v %s %s %s", checked.Problems, checked.Outcome, checked.Hub, checked.Versions))
	if len(checked.Rules) != 1 || checked.Rules[0].Kind != "format" || !strings.Contains(lines(in.Policy)[checked.Rules[0].Line-1], "- format:") {
		t.Errorf("rules %+v", checked.Rules)
	}
	spoke := checked.Spokes[0]
	if i := slices.IndexFunc(spoke.Fields, func(f Field) bool { return f.Version == "v1" && f.Path == ".spec.cronSpec" }); i < 0 || spoke.Fields[i].Rule != checked.Rules[0].Path {
		t.Errorf(".spec.cronSpec has no rule: %+v", spoke.Fields)
	}
	expect.Contains(t, "the drawing", spoke.Drawing, `href="#`+checked.Rules[0].ID+`"`, "<svg", ".owner")
	expect.Equal(t, "CronTabs", 3, len(checked.Objects))
	one := checked.Objects[0].Conversions[0]
	if one.To != "v2" || !strings.Contains(one.Text, "min: ") || one.Error != "" || len(one.Steps) != 1 || len(one.Back) != 0 {
		t.Errorf("conversion %+v", one)
	}
	expect.Contains(t, "the results", checked.Tried, "3 objects from the page; 1 object of other kinds ignored")
}

// groups is a policy for the sample with a group, whose rule is in the line with - move.
const groups = `apiVersion: conversion-operator.io/v1alpha1
kind: ConversionPolicy
metadata: {name: crontabs.stable.example.com}
spec:
  converter:
    type: Declarative
    declarative:
      hub: v2
      ruleGroups:
      - name: zone
        rules:
        - move: {from: .owner, to: .timeZone}
      spokes:
      - version: v1
        rules:
        - drop: {to: .spec.hour}
        - use: {group: zone, from: .spec, to: .spec}
`

// TestGroups: a rule of a group is found in the text, and is one for each use.
func TestGroups(t *testing.T) {
	in := Sample()
	in.Policy = groups
	checked := Check(t.Context(), in)
	expect.Equal(t, "problems, and number of rules", "[] 2", fmt.Sprintf("%+v %d", checked.Problems, len(checked.Rules)))
	want := Rule{"rule-v1-2", "spec.converter.declarative.ruleGroups[0].rules[0] (used by spokes[0].rules[1])", "move", 12}
	expect.Equal(t, "the rule", want, checked.Rules[1])
	isOwner := func(f Field) bool { return f.Path == ".spec.owner" && f.Rule == checked.Rules[1].Path }
	if spoke := checked.Spokes[0]; !slices.ContainsFunc(spoke.Fields, isOwner) || !strings.Contains(spoke.Drawing, `href="#rule-v1-2"`) {
		t.Errorf(".spec.owner has no rule: %+v, %s", spoke.Fields, spoke.Drawing)
	}
	if suggested := Suggest(t.Context(), in); len(suggested.Problems) > 0 || slices.ContainsFunc(suggested.Suggestions, func(s Suggestion) bool { return strings.Contains(s.Rule, ".spec.owner") }) {
		t.Errorf("suggested %+v", suggested)
	}
	in.Policy = strings.Replace(groups, ".owner", ".owners", 1)
	checked = Check(t.Context(), in)
	if len(checked.Problems) != 1 || checked.Problems[0].Line != 12 || !strings.HasSuffix(checked.Problems[0].Message, "(used by spokes[0].rules[1])") {
		t.Errorf("problems %+v", checked.Problems)
	}
	// Its paths do not begin at the root.
	before, _, _ := strings.Cut(groups, ".timeZone")
	expect.Equal(t, "options", "[]", fmt.Sprint(Complete(in, len(before)).Options))
}

// TestProblems has texts that users have while they type.
func TestProblems(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Input)
		text   Text
		// line has a part of the line with the problem, empty if it has no line.
		line, message string
	}{
		"no policy":            {func(in *Input) { in.Policy = "" }, TextPolicy, "", "there is no ConversionPolicy"},
		"two policies":         {func(in *Input) { in.Policy += "---\n" + in.Policy }, TextPolicy, "", "there are 2 objects of the kind ConversionPolicy"},
		"unfinished YAML":      {func(in *Input) { in.Policy += "  converter\n" }, TextPolicy, "converter", "could not find expected ':'"},
		"an unknown field":     {func(in *Input) { in.Policy = strings.Replace(in.Policy, "template:", "temp:", 1) }, TextPolicy, "temp:", "no such field"},
		"a missing field":      {func(in *Input) { in.Policy = strings.Replace(in.Policy, "from: .spec.cronSpec", "", 1) }, TextPolicy, "format:", "Required"},
		"a field that is gone": {func(in *Input) { in.Policy = strings.Replace(in.Policy, ".spec.cronSpec", ".spec.cronSpecs", 1) }, TextPolicy, "cronSpecs", ".spec.cronSpec"},
		"another name":         {func(in *Input) { in.Policy = strings.Replace(in.Policy, "name: crontabs", "name: cronjobs", 1) }, TextPolicy, "cronjobs", "write crontabs.stable.example.com"},
		"no definition":        {func(in *Input) { in.CRD = "kind: Deployment\n" }, TextCRD, "", "there is no CustomResourceDefinition"},
		"an old definition":    {func(in *Input) { in.CRD = strings.Replace(in.CRD, "k8s.io/v1", "k8s.io/v1beta1", 1) }, TextCRD, "", "only apiextensions.k8s.io/v1 is read"},
		"no structural schema": {func(in *Input) {
			in.CRD = strings.ReplaceAll(in.CRD, "type: object\n        properties:", "properties:")
		}, TextCRD, "openAPIV3Schema", "must not be empty at the root"},
		"a reference": {func(in *Input) {
			in.CRD = strings.Replace(in.CRD, "image: {type: string}", "image: {$ref: '#/none'}", 1)
		}, TextCRD, "$ref", "is not supported"},
		"objects that are text": {func(in *Input) { in.Objects = "hello" }, TextObjects, "", "expected an object"},
		"a tab":                 {func(in *Input) { in.Policy = "a:\n\tb: 1" }, TextPolicy, "b: 1", "cannot start any token"},
		"an endless alias":      {func(in *Input) { in.Policy = "a: &a [*a]" }, TextPolicy, "a: &a", "nested deeper"},
	} {
		t.Run(name, func(t *testing.T) {
			in := Sample()
			test.change(&in)
			checked := Check(t.Context(), in)
			if len(checked.Problems) == 0 {
				t.Fatal("nothing is wrong")
			}
			got := checked.Problems[0]
			text := map[Text]string{TextCRD: in.CRD, TextPolicy: in.Policy, TextObjects: in.Objects}[got.Text]
			expect.Equal(t, "the text of the problem", test.text, got.Text)
			expect.Contains(t, "the problem", got.Message, test.message)
			if test.line != "" && (got.Line == 0 || !strings.Contains(lines(text)[got.Line-1], test.line)) {
				t.Errorf("line %d of %q, want that with %q", got.Line, text, test.line)
			}
		})
	}
}

func TestSuggest(t *testing.T) {
	in := Sample()
	in.CRD = strings.Replace(in.CRD, "timeZone: {type: string}", "timeZone: {type: string}\n              ownerName: {type: string, description: who owns it}", 1)
	in.CRD = strings.Replace(in.CRD, "owner: {type: string}", "owner: {type: string, description: who owns it}", 1)
	suggested := Suggest(t.Context(), in)
	if len(suggested.Problems) > 0 || len(suggested.Suggestions) != 1 {
		t.Fatalf("suggested %+v", suggested)
	}
	one := suggested.Suggestions[0]
	expect.Equal(t, "rule and spoke", []string{"move: {from: .spec.owner, to: .spec.ownerName}", "v1"}, []string{one.Rule, one.Spoke})
	expect.Contains(t, "the reason", one.Why, "NOT CONFIRMED")
	accepted := Accept(in, one)
	if len(accepted.Problems) > 0 || strings.TrimSpace(lines(accepted.Policy)[accepted.Line-1]) != "- "+one.Rule {
		t.Fatalf("accepted %+v", accepted)
	}
	in.Policy = accepted.Policy
	checked := Check(t.Context(), in)
	expect.Equal(t, "problems, and number of rules", "[] 2", fmt.Sprintf("%+v %d", checked.Problems, len(checked.Rules)))
	expect.Equal(t, "suggestions, another time", "[]", fmt.Sprint(Suggest(t.Context(), in).Suggestions))
}

// TestSuggestPolicy begins without a policy.
func TestSuggestPolicy(t *testing.T) {
	in := Sample()
	in.Policy = "# nothing yet\n"
	suggested := Suggest(t.Context(), in)
	in.Policy = suggested.Policy
	checked := Check(t.Context(), in)
	expect.Equal(t, "problems, and the hub, of "+in.Policy, "[] v2", fmt.Sprintf("%+v %s", checked.Problems, checked.Hub))
	in.CRD, in.Policy = strings.Replace(in.CRD, "  - name: v2", "  - name: v1", 1), ""
	expect.Equal(t, "nothing is wrong where both versions have the same name", false, len(Suggest(t.Context(), in).Problems) == 0)
}

// TestAccept inserts a rule into policies that users write in different ways. Each other line stays.
func TestAccept(t *testing.T) {
	const start = "apiVersion: conversion-operator.io/v1alpha1\nkind: ConversionPolicy\nmetadata: {name: crontabs.stable.example.com}\nspec:\n  converter:\n    type: Declarative\n    declarative:\n      hub: v2\n      spokes:\n"
	rule := Suggestion{Spoke: "v1", Rule: "move: {from: .spec.owner, to: .spec.timeZone}"}
	for name, test := range map[string]struct{ rest, want, fails string }{
		"as the last rule": {
			rest: "      - version: v1\n        rules:\n        - drop: {from: .spec.image} # x\n\n  # next\n  migration: {mode: Manual}\n",
			want: "      - version: v1\n        rules:\n        - drop: {from: .spec.image} # x\n        - RULE\n\n  # next\n  migration: {mode: Manual}\n",
		},
		"indented dashes": {
			rest: "        - version: v1\n          rules:\n            - drop: {from: .spec.image}\n        - version: v0\n",
			want: "        - version: v1\n          rules:\n            - drop: {from: .spec.image}\n            - RULE\n        - version: v0\n",
		},
		"after a block of text": {
			rest: "      - version: v1\n        rules:\n        - cel:\n            from: {a: .spec.image}\n            to: {b: .spec.min}\n            toHub:\n              b: |\n                a\n            # c\n            toSpoke: {a: b}\n            # end\n",
			want: "      - version: v1\n        rules:\n        - cel:\n            from: {a: .spec.image}\n            to: {b: .spec.min}\n            toHub:\n              b: |\n                a\n            # c\n            toSpoke: {a: b}\n            # end\n        - RULE\n",
		},
		"no rules":             {rest: "      - version: v1 # old\n", want: "      - version: v1 # old\n        rules:\n        - RULE\n"},
		"empty brackets":       {rest: "      - version: v1\n        rules: [] # none\n", want: "      - version: v1\n        rules: # none\n        - RULE\n"},
		"null":                 {rest: "      - version: v1\n        rules:\n", want: "      - version: v1\n        rules:\n        - RULE\n"},
		"rules before version": {rest: "      - rules:\n        - drop: {from: .spec.image}\n        version: v1\n", want: "      - rules:\n        - drop: {from: .spec.image}\n        - RULE\n        version: v1\n"},
		"no final line break":  {rest: "      - version: v1\n        rules:\n        - drop: {from: .spec.image}", want: "      - version: v1\n        rules:\n        - drop: {from: .spec.image}\n        - RULE\n"},
		"rules in brackets":    {rest: "      - version: v1\n        rules: [{drop: {from: .spec.image}}]\n", fails: "the rules are in brackets"},
		"spoke in braces":      {rest: "      - {version: v1, rules: []}\n", fails: "the spoke is in braces"},
		"another spoke":        {rest: "      - version: v0\n", fails: "no spoke v1"},
		// YAML allows this; lines do not show where the rule ends.
		"braces over lines":       {rest: "      - version: v1\n        rules:\n        - drop: {from:\n  .spec.image}\n", fails: "is not clear"},
		"a mapping of spokes":     {rest: "        a: {}\n        b:\n          version: v1\n", fails: "is not clear"},
		"line breaks of YAML 1.1": {rest: "      - version: v1 # a\u2028        # b\n", fails: "line breaks other than"},
	} {
		for _, ending := range []string{"\n", "\r\n"} {
			t.Run(fmt.Sprintf("%s %q", name, ending), func(t *testing.T) {
				in := Sample()
				in.Policy = strings.ReplaceAll(start+test.rest, "\n", ending)
				want := strings.ReplaceAll(start+strings.Replace(test.want, "RULE", rule.Rule, 1), "\n", ending)
				got := Accept(in, rule)
				switch {
				case test.fails != "":
					if len(got.Problems) == 0 || !strings.Contains(got.Problems[0].Message, test.fails) || got.Policy != in.Policy {
						t.Errorf("accepted %+v, want %q", got, test.fails)
					}
				case got.Policy != want || len(got.Problems) > 0:
					t.Errorf("got %q, problems %+v, want %q", got.Policy, got.Problems, want)
				case !strings.Contains(strings.Split(got.Policy, ending)[got.Line-1], rule.Rule):
					t.Errorf("line %d is not the rule", got.Line)
				}
			})
		}
	}
}

// TestComplete has a policy up to the cursor, which is at |.
func TestComplete(t *testing.T) {
	const rules = "spec:\n  converter:\n    type: Declarative\n    declarative:\n      hub: v2\n      spokes:\n      - version: v1\n        rules:\n"
	for policy, want := range map[string]struct {
		options string
		typed   string
	}{
		"sp|":        {"spec", "sp"},
		"spec:\n  |": {"converter", ""},
		"spec:\n  converter:\n    type: Declarative\n    declarative:\n      hub: |":                      {"v2", ""},
		"spec:\n  converter:\n    type: Declarative\n    declarative:\n      spokes:\n      - version: |": {"v1", ""},
		"spec:\n  converter:\n    type: Declarative\n    declarative:\n      spokes:\n      - |":          {"rules", ""},
		"spec:\n  migration:\n    mode: |":              {"Automatic", ""},
		"spec:\n  migration: {mode: Au|":                {"OnTrigger", "Au"},
		rules + "        - mo|":                         {"move", "mo"},
		rules + "        - |":                           {"format", ""},
		rules + "          - |":                         {"format", ""},
		rules + "        - move:\n            |":        {"from", ""},
		rules + "        - move: {|":                    {"to", ""},
		rules + "        - move: {from: .sp|":           {".spec.cronSpec", ".sp"},
		rules + "        - move: {from: .spec.a, to: |": {".spec.timeZone", ""},
		rules + "        - move:\n            from: .spec.a\n            to: .spec.t|":                             {".spec.timeZone", ".spec.t"},
		rules + "        - format:\n            from: .spec.cronSpec\n            to: {min: .spec.min, hour: |":    {".spec.hour", ""},
		rules + "        - format:\n            to:\n              min: |":                                         {".spec.min", ""},
		rules + "        - drop: {from: .spec.owner}\n        - cast: {from: .spec.replicas, to: .spec.min, as: |": {"Quantity", ""},
		"a: b\n---\nkind: ConversionPolicy\n|":                                                                     {"metadata", ""},
	} {
		t.Run(policy, func(t *testing.T) {
			before, after, _ := strings.Cut(policy, "|")
			in := Sample()
			in.Policy = before + after + "\n"
			got := Complete(in, len(before))
			if got.Typed != want.typed || !slices.ContainsFunc(got.Options, func(o Option) bool { return o.Label == want.options }) {
				t.Errorf("typed %q, options %+v, want %q and %q", got.Typed, got.Options, want.typed, want.options)
			}
		})
	}
	groups := Sample()
	groups.Policy = "spec:\n  converter:\n    type: Declarative\n    declarative:\n      ruleGroups:\n      - name: server\n        rules:\n        - move: {"
	for _, option := range Complete(groups, len(groups.Policy)).Options {
		expect.Equal(t, option.Label+" of a rule in a group has a description", true, option.Info != "")
	}
	// Lines of other systems end in another way.
	windows := Sample()
	windows.Policy = strings.ReplaceAll(rules+"        - move:\n            from: .spec.c", "\n", "\r\n")
	if got := Complete(windows, len(windows.Policy)); len(got.Options) == 0 || got.Typed != ".spec.c" {
		t.Errorf("with CRLF: %+v", got)
	}
	// The spoke's fields are no fields of the hub.
	in := Sample()
	in.Policy = rules + "        - move: {from: "
	ofHub := func(option Option) bool { return option.Label == ".spec.timeZone" }
	expect.Equal(t, "a field of the hub is offered for the spoke", false, slices.ContainsFunc(Complete(in, len(in.Policy)).Options, ofHub))
}

// FuzzComplete types anything, and asks at each place.
func FuzzComplete(f *testing.F) {
	in := Sample()
	f.Add(in.Policy, 300)
	f.Add("a: {b: [c, {d: ", 15)
	f.Add("- - - x: ]}", 11)
	f.Fuzz(func(t *testing.T, policy string, offset int) {
		typed := in
		typed.Policy = policy
		got := Complete(typed, offset)
		if before := policy[:max(0, min(offset, len(policy)))]; !strings.HasSuffix(before, got.Typed) {
			t.Errorf("%q is typed, which does not end %q", got.Typed, before)
		}
	})
}

// FuzzAccept accepts a rule in any text: what is there stays.
func FuzzAccept(f *testing.F) {
	in := Sample()
	f.Add(in.Policy)
	f.Add(strings.ReplaceAll(in.Policy, "rules:", "rules: []"))
	rule := Suggestion{Spoke: "v1", Rule: "drop: {from: .spec.owner}"}
	f.Fuzz(func(t *testing.T, policy string) {
		typed := in
		typed.Policy = policy
		got := Accept(typed, rule)
		if len(got.Problems) > 0 {
			return
		}
		before := Check(t.Context(), typed)
		typed.Policy = got.Policy
		after := Check(t.Context(), typed)
		if len(before.Problems) == 0 && len(after.Rules) != len(before.Rules)+1 && !onlyAboutRule(after.Problems) {
			t.Errorf("%d rules, then %d, problems %+v:\n%s", len(before.Rules), len(after.Rules), after.Problems, got.Policy)
		}
	})
}

// onlyAboutRule reports whether the texts are YAML: the rule itself may not fit the policy.
func onlyAboutRule(found []Problem) bool {
	return len(found) > 0 && !slices.ContainsFunc(found, func(p Problem) bool { return p.Path == "" })
}

func TestAnswer(t *testing.T) {
	question, err := json.Marshal(Question{Input: Sample()})
	expect.NoError(t, err)
	for _, name := range []string{QuestionCheck, QuestionSuggest, QuestionAccept, QuestionComplete} {
		if answer, err := Answer(t.Context(), name, question); err != nil || !json.Valid(answer) {
			t.Errorf("%s: %s, %v", name, answer, err)
		}
	}
	_, err = Answer(t.Context(), "steal", question)
	expect.Equal(t, "an unknown question has an answer", false, err == nil)
	_, err = Answer(t.Context(), QuestionCheck, []byte("{"))
	expect.Equal(t, "half a question has an answer", false, err == nil)
}
