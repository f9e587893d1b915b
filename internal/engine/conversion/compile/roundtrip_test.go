// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/rulecases"
)

// TestPartlyPreserved checks which rules may preserve single values, of the spoke and of the hub.
func TestPartlyPreserved(t *testing.T) {
	for _, kind := range rulecases.All(t) {
		for _, test := range kind.Preserves {
			t.Run(kind.Name+": "+test.Name, func(t *testing.T) {
				result := between(t, string(test.V1), string(test.V2), string(test.Rules))
				converterOf(t, result)
				partly := map[string]bool{}
				for _, leaf := range result.Leaves {
					partly[leaf.Version] = partly[leaf.Version] || leaf.PartlyPreserved
				}
				got := map[[2]bool]string{{true, true}: "spoke and hub", {true, false}: "spoke", {false, true}: "hub"}[[2]bool{partly["v1"], partly["v2"]}]
				expect.Equal(t, "result", test.Of, got)
			})
		}
	}
}
