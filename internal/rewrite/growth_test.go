// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rewrite_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/rewrite"
)

// TestGrowth: the memory that a file takes in all grows as its number of objects does. A copy of the text
// for each of them would take most of it.
func TestGrowth(t *testing.T) {
	rewriter := newRewriter(t, rewrite.Options{To: "v1"}, "testdata/policy.yaml")
	used := func(objects int) uint64 {
		text := []byte(strings.Repeat("---\napiVersion: example.com/v1beta1\nkind: Gateway\nmetadata: {name: a}\nspec: {replicas: 2} # "+strings.Repeat("comment ", 30)+"\n", objects))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		result := rewriter.Text(text)
		runtime.ReadMemStats(&after)
		if len(result.Objects) != objects || result.Objects[objects-1].State != rewrite.Rewritten {
			t.Fatalf("%d objects, want %d that are rewritten", len(result.Objects), objects)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	few, many := used(500), used(2000)
	if many > 5*few {
		t.Errorf("500 objects take %d bytes, and 2,000 take %d", few, many)
	}
}
