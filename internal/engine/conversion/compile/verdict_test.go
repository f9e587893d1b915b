// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"testing"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestLeaves has a field for every owner.
func TestLeaves(t *testing.T) {
	result := between(t,
		`same: {type: string}, o: {type: object, properties: {a: {type: string}, b: {type: array, items: {type: string}}}}, own: {type: object, properties: {x: {type: string}, z: {type: object}}}, old: {type: string}, text: {type: string}, policy: {type: string, enum: [A]}, list: {type: array, items: {type: object, properties: {x: {type: string}, num: {type: integer}}}}, m: {type: object, additionalProperties: {type: string}}, open: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}}}, er: {type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: object}}}`,
		`same: {type: string}, p: {type: object, properties: {a: {type: string}, b: {type: array, items: {type: string}}}}, host: {type: string}, port: {type: integer}, policy: {type: string, enum: [B]}, list: {type: array, items: {type: object, properties: {x: {type: string}}}}, m: {type: object, additionalProperties: {type: string}}, c: {type: string}, open: {type: object, properties: {a: {type: string}}}, mode: {type: string}, label: {type: string}`,
		`{move: {from: .o, to: .p}}, {drop: {from: .old}}, {format: {from: .text, template: "{h}:{p}", to: {h: .host, p: .port}}}, {values: {from: .policy, to: .policy, table: [{from: A, to: B}]}}, {move: {from: '.m["c"]', to: .c}}, {default: {to: .mode, value: x}}, {move: {from: '.metadata.labels["l"]', to: .label}}`)
	var got []string
	for _, leaf := range result.Leaves {
		text := leaf.String() + " " + string(leaf.Owner)
		if leaf.Root != "" && leaf.Root != leaf.Path {
			text += " with " + leaf.Root
		}
		if leaf.Rule != "" {
			text += " by " + shortRule(leaf.Rule)
		}
		if leaf.PartlyPreserved {
			text += ", partly preserved"
		}
		got = append(got, text)
	}
	want := []string{
		"v1:.er Preserved",
		"v1:.list[*].num Preserved",
		"v1:.list[*].x Exact",
		"v1:.m.c Exact by spokes[0].rules[4]",
		"v1:.m[*] Exact",
		"v1:.metadata.labels.l Exact by spokes[0].rules[6]",
		"v1:.o.a Exact with .o by spokes[0].rules[0]",
		"v1:.o.b Exact with .o by spokes[0].rules[0]",
		"v1:.old Dropped by spokes[0].rules[1]",
		"v1:.open.a Exact",
		"v1:.open[*] Preserved",
		"v1:.own.x Preserved with .own",
		"v1:.own.z Preserved with .own",
		"v1:.policy Exact by spokes[0].rules[3]",
		"v1:.same Exact",
		"v1:.text Exact by spokes[0].rules[2], partly preserved",
		"v2:.c Exact by spokes[0].rules[4]",
		"v2:.host Exact by spokes[0].rules[2], partly preserved",
		"v2:.label Exact by spokes[0].rules[6], partly preserved",
		"v2:.list[*].x Exact",
		"v2:.m.c Preserved",
		"v2:.m[*] Exact",
		"v2:.metadata.labels.l Preserved",
		"v2:.mode Preserved by spokes[0].rules[5]",
		"v2:.open.a Exact",
		"v2:.p.a Exact with .p by spokes[0].rules[0]",
		"v2:.p.b Exact with .p by spokes[0].rules[0]",
		"v2:.policy Exact by spokes[0].rules[3]",
		"v2:.port Exact by spokes[0].rules[2], partly preserved",
		"v2:.same Exact",
	}
	expect.Equal(t, "result", want, got)
}

// TestMinimumFidelity checks that errors name the fields with less fidelity than the policy requires.
func TestMinimumFidelity(t *testing.T) {
	const v1, v2 = "a: {type: string}, own: {type: object, properties: {x: {type: string}, z: {type: string}}}, old: {type: string}", "a: {type: string}, more: {type: string}"
	const drop = "{drop: {from: .old}}, {drop: {from: .own.x}}"
	at := "spec.converter.declarative.minimumFidelity: Invalid value: "
	for name, test := range map[string]struct{ v1, v2, minimum, rules, want string }{
		"anything":                      {v1, v2, "Lossy", drop, ""},
		"nothing":                       {v1, v2, `""`, drop, ""},
		"exact":                         {"a: {type: string}", "b: {type: string}", "Exact", "{move: {from: .a, to: .b}}", ""},
		"preserved":                     {v1, v2, "Preserved", "", ""},
		"preserved and dropped":         {v1, v2, "Exact", drop, `"Exact": preserved: v1:.own.z, v2:.more: write rules that give them a place in the other version; dropped: v1:.old (spokes[0].rules[0]), v1:.own.x (spokes[0].rules[1]): remove those rules, and the fields are preserved; or lower minimumFidelity to Lossy`},
		"preserved where it is exact":   {v1, v2, "Exact", "", `"Exact": preserved: v1:.old, v1:.own, v2:.more: write rules that give them a place in the other version; or lower minimumFidelity to Preserved`},
		"dropped where it is preserved": {v1, v2, "Preserved", drop, `"Preserved": dropped: v1:.old (spokes[0].rules[0]), v1:.own.x (spokes[0].rules[1]): remove those rules, and the fields are preserved; or lower minimumFidelity to Lossy`},
	} {
		t.Run(name, func(t *testing.T) {
			rules := from[v1alpha1.DeclarativeConverter](t, "{hub: v2, minimumFidelity: "+test.minimum+", spokes: [{version: v1, rules: ["+test.rules+"]}]}")
			result := Compile(widgets(t, map[string]string{"v1": test.v1, "v2": test.v2}), rules)
			want := test.want
			if want != "" {
				want = at + want
			}
			got := ""
			for _, err := range result.Errors {
				got += err.Error()
			}
			expect.Equal(t, "errors", want, got)
			expect.Equal(t, "that there is a ruleset", want == "", result.Ruleset != nil)
		})
	}
}
