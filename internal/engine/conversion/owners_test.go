// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// checkOwners walks every schema independently, down to its scalars. Each of these must belong to
// exactly one leaf field.
func checkOwners(t *testing.T, result compile.Result, schemas map[string]*schema.Structural) {
	t.Helper()
	leaves := map[[2]string]map[string]int{}
	for _, leaf := range result.Leaves {
		of := [2]string{leaf.Spoke, leaf.Version}
		if leaves[of] == nil {
			leaves[of] = map[string]int{}
		}
		leaves[of][leaf.Path]++
	}
	for _, verdict := range result.Verdicts {
		for _, version := range []string{verdict.Version, result.Ruleset.Hub} {
			of := leaves[[2]string{verdict.Version, version}]
			for name, property := range schemas[version].Properties {
				if name != "apiVersion" && name != "kind" && name != "metadata" {
					checkOwner(t, of, version, conversion.Path{name}.String(), &property)
				}
			}
		}
	}
}

func checkOwner(t *testing.T, leaves map[string]int, version, at string, s *schema.Structural) {
	t.Helper()
	for name, property := range s.Properties {
		checkOwner(t, leaves, version, at+conversion.Path{name}.String(), &property)
	}
	switch {
	case s.Items != nil:
		checkOwner(t, leaves, version, at+"[*]", s.Items)
	case s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil:
		checkOwner(t, leaves, version, at+"[*]", s.AdditionalProperties.Structural)
	case s.XPreserveUnknownFields && len(s.Properties) > 0:
		checkOne(t, leaves, version, at+"[*]")
	case len(s.Properties) == 0:
		checkOne(t, leaves, version, at)
	}
}

// checkOne counts the leaves that are the field, or contain it.
func checkOne(t *testing.T, leaves map[string]int, version, at string) {
	t.Helper()
	owners := 0
	for path, count := range leaves {
		if path == at || path == at+"[*]" || strings.HasPrefix(at, path+".") || strings.HasPrefix(at, path+"[") {
			owners += count
		}
	}
	if owners != 1 {
		t.Errorf("%s:%s has %d owners among %v", version, at, owners, leaves)
	}
}

// TestEveryLeafHasOneOwner compiles every sample, and versions that differ in every way, several
// times.
func TestEveryLeafHasOneOwner(t *testing.T) {
	crds := map[string]*apiextensionsv1.CustomResourceDefinition{}
	rules := map[string]*v1alpha1.DeclarativeConverter{}
	crds["rich"], rules["rich"] = richWorld(t)
	policies, err := filepath.Glob(filepath.Join("..", "..", "..", "config", "samples", "*", "2-policy.yaml"))
	if err != nil || len(policies) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	for _, policy := range policies {
		sample, crd := readSample(t, filepath.Dir(policy))
		crds[policy], rules[policy] = crd, sample.Spec.Converter.Declarative
	}
	for name, crd := range crds {
		t.Run(name, func(t *testing.T) {
			result := compile.Compile(crd, rules[name])
			converterOf(t, result)
			checkOwners(t, result, structuralSchemas(t, crd))
			for range 3 {
				expect.Equal(t, "result, compiled again", result, compile.Compile(crd, rules[name]))
			}
			expect.Equal(t, "length of the hash", 16, len(result.Ruleset.Hash()))
		})
	}
}
