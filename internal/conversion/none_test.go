// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import "testing"

// TestIdentity: strategy None gives the same only where nothing is touched.
func TestIdentity(t *testing.T) {
	const x = "x: {type: string}"
	cases := map[string]struct {
		v1, v2, rules string
		want          bool
	}{
		"the same":                       {x, x, "", true},
		"the same, told differently":     {x, "x: {type: string, description: what it is, maxLength: 3}", "", true},
		"the same, in elements":          {"l: {type: array, items: {type: object, properties: {x: {type: string}}}}", "l: {type: array, items: {type: object, properties: {x: {type: string}}}}", "", true},
		"a field more":                   {x, x + ", y: {type: string}", "", false},
		"a field less":                   {x + ", y: {type: string}", x, "", false},
		"another type":                   {x, "x: {type: integer}", "", false},
		"a field more, in elements":      {"l: {type: array, items: {type: object, properties: {x: {type: string}}}}", "l: {type: array, items: {type: object, properties: {x: {type: string}, y: {type: string}}}}", "", false},
		"anything on one side":           {"x: {type: object}", "x: {type: object, x-kubernetes-preserve-unknown-fields: true}", "", false},
		"null on one side":               {x, "x: {type: string, nullable: true}", "", false},
		"a rule between the same fields": {x, x, `{values: {from: .x, to: .x, table: [{from: a, to: b}]}}`, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			result := between(t, c.v1, c.v2, c.rules)
			if result.Plan == nil {
				t.Fatalf("the rules are refused: %v", result.Errors)
			}
			if got := result.Plan.Identity(); got != c.want {
				t.Errorf("identity: %t, want %t: %+v", got, c.want, result.Plan.Spokes)
			}
		})
	}
}
