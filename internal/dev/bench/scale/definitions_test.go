// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestRules: every definition converts by the rules of its policy.
func TestRules(t *testing.T) {
	const all = 150 // more than the projects have
	made, err := definitions(t.Context(), all)
	expect.NoError(t, err)
	moves := 0
	for _, crd := range made {
		result := compile.Compile(crd, rules(crd))
		if result.Ruleset == nil {
			t.Fatalf("%s: %v %v", crd.Name, result.Errors, result.Missing)
		}
		moves += len(result.Ruleset.Spokes[0].Root.Moves)
	}
	if moves < all {
		t.Errorf("there are %d moves in %d rulesets", moves, all)
	}
}
