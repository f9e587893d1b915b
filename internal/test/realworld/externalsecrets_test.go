// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realworld

import "testing"

// TestExternalSecret: External Secrets Operator's v1beta1.
func TestExternalSecret(t *testing.T) {
	process := startOlder(t, "ExternalSecret")
	const forgotten = "theirs forgets the conversionStrategy, in both directions, and it is lost; ours moves it"
	p := project{
		sample: "external-secrets-externalsecrets",
		module: "github.com/external-secrets/external-secrets",
		at:     older,
		crd:    "config/crds/bases/external-secrets.io_externalsecrets.yaml",
		spoke:  process.version("v1alpha1"),
		hub:    process.version("v1beta1"),
		own:    convertRemote,
		differences: []difference{
			{"v1alpha1", ".spec.dataFrom", func(theirs, ours any) bool {
				some, _ := theirs.([]any)
				all, _ := ours.([]any)
				return len(some) < len(all)
			}, "theirs also leaves out elements with an empty key, and they are lost; ours keeps them"},
			{"v1alpha1", ".spec.dataFrom[*].conversionStrategy", onlyOurs, forgotten},
			{"v1beta1", ".spec.dataFrom[*].extract.conversionStrategy", onlyOurs, forgotten},
		},
		examples: map[string][]any{".spec.refreshInterval": {"1h0m0s", "0s", "30s"}},
	}
	p.check(t)
}
