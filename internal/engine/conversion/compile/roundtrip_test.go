// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"testing"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
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

// TestStorageWarning checks that there is no warning with two versions, because a conversion then
// takes one step in any case.
func TestStorageWarning(t *testing.T) {
	rules := from[v1alpha1.DeclarativeConverter](t, "{hub: v2, spokes: [{version: v1}, {version: v3}]}")
	for name, test := range map[string]struct {
		storage  string
		versions []string
		want     []string
	}{
		"the hub":                    {"v2", []string{"v1", "v2", "v3"}, nil},
		"a spoke":                    {"v1", []string{"v1", "v2", "v3"}, []string{"objects are stored at v1, which is not the hub: between it and the other versions each conversion takes two steps, over v2"}},
		"a spoke and nothing else":   {"v1", []string{"v1", "v2"}, nil},
		"no version, as in a sketch": {"", []string{"v1", "v2", "v3"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			versions := map[string]string{}
			for _, version := range test.versions {
				versions[version] = "a: {type: string}"
			}
			crd := widgets(t, versions)
			for i := range crd.Spec.Versions {
				crd.Spec.Versions[i].Storage = crd.Spec.Versions[i].Name == test.storage
			}
			expect.Equal(t, "warnings", test.want, Compile(crd, rules).Warnings)
		})
	}
}
