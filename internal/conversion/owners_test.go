// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
)

// checkOwners walks every schema by itself, down to its scalars, and looks for
// the leaves that have each of them: there must be one.
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

// checkOne counts the leaves that are the field, or have it in them.
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

// TestEveryLeafHasOneOwner: in every sample, and in versions that differ in every way.
func TestEveryLeafHasOneOwner(t *testing.T) {
	crds := map[string]*apiextensionsv1.CustomResourceDefinition{}
	rules := map[string]*v1alpha1.DeclarativeConverter{}
	crds["rich"] = widgets(t, map[string]string{"v1": spaces(richSpoke), "v2": spaces(richHub), "v3": richOther})
	rules["rich"] = from[v1alpha1.DeclarativeConverter](t, spaces(richRules))
	policies, err := filepath.Glob(filepath.Join("..", "..", "config", "samples", "*", "2-policy.yaml"))
	if err != nil || len(policies) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	for _, policy := range policies {
		crds[policy] = from[apiextensionsv1.CustomResourceDefinition](t, file(t, filepath.Join(filepath.Dir(policy), "3-crd-both.yaml")))
		rules[policy] = from[v1alpha1.ConversionPolicy](t, file(t, policy)).Spec.Converter.Declarative
	}
	for name, crd := range crds {
		t.Run(name, func(t *testing.T) {
			schemas, err := structuralSchemas(crd)
			if err != nil {
				t.Fatal(err)
			}
			result := compile.Compile(crd, rules[name])
			converterOf(t, result)
			checkOwners(t, result, schemas)
			if again := compile.Compile(crd, rules[name]); !cmp.Equal(result, again) {
				t.Errorf("not the same twice:\n%s", cmp.Diff(result, again))
			}
		})
	}
}

func spaces(text string) string { return strings.ReplaceAll(text, "\t", " ") }

func file(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
