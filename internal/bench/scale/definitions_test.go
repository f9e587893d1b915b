// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
)

// TestRules: every definition converts by the rules of its policy, before and after their change, and
// the change is one of the ruleset.
func TestRules(t *testing.T) {
	const all = 150 // more than the projects have
	made, err := definitions(t.Context(), all, all)
	if err != nil {
		t.Fatal(err)
	}
	moves := 0
	for _, crd := range made {
		declared := rules(crd)
		var rulesets [2]string
		for i := range rulesets {
			result := compile.Compile(crd, declared)
			if result.Ruleset == nil {
				t.Fatalf("%s: %v %v", crd.Name, result.Errors, result.Missing)
			}
			text, err := result.Ruleset.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			rulesets[i] = string(text)
			moves += len(result.Ruleset.Spokes[0].Root.Moves)
			declared.Spokes[0].Rules = append(declared.Spokes[0].Rules, anotherRule)
		}
		if rulesets[0] == rulesets[1] {
			t.Errorf("%s: another rule does not change the ruleset", crd.Name)
		}
	}
	if moves < all {
		t.Errorf("there are %d moves in %d rulesets", moves, 2*all)
	}
}
