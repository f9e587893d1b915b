// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/runner"
	"sigs.k8s.io/yaml"
)

var root = filepath.Join("..", "..", "..", "..")

// TestCompatible compares the current CRDs with those of earlier versions and of the previous
// revision.
func TestCompatible(t *testing.T) {
	earlier, err := filepath.Glob(filepath.Join("..", "testdata", "*", "crds"))
	if err != nil || len(earlier) == 0 {
		t.Fatalf("there are no CustomResourceDefinitions of earlier versions: %v", err)
	}
	for _, folder := range append(earlier, filepath.Join(root, "bin", "previous", "crds")) {
		t.Run(folder, func(t *testing.T) {
			for _, old := range read(t, folder) {
				now := read(t, filepath.Join(root, "config", "crd", "bases"))
				at := slices.IndexFunc(now, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return crd.Name == old.Name })
				if at < 0 {
					t.Fatalf("CustomResourceDefinition %s is not installed any more", old.Name)
				}
				for _, change := range breaks(t, old, now[at]) {
					if !isDeclared(t, change) {
						t.Error(change)
					}
				}
			}
		})
	}
}

// isDeclared reports that a change is one of breaks.yaml, which is about a field and those below it.
func isDeclared(t *testing.T, change string) bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "breaks.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var declared []struct{ Field, Reason string }
	if err := yaml.Unmarshal(text, &declared); err != nil {
		t.Fatal(err)
	}
	for _, one := range declared {
		_, after, found := strings.Cut(strings.Replace(change, "v1alpha1.^", "v1alpha1 ^", 1)+":", "v1alpha1 ^."+one.Field)
		if found && strings.ContainsAny(after[:1], ":.[") {
			t.Logf("%s: %s", change, one.Reason)
			return true
		}
	}
	return false
}

func read(t *testing.T, folder string) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no CustomResourceDefinition, run make compatibility: %v", folder, err)
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, crd); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		crds = append(crds, crd)
	}
	return crds
}

// rules are crdify's defaults, except that an enum may get new values, which no stored policy has.
// breaks reports changes without a rule, but does not fail for them.
func rules() *config.Config {
	return &config.Config{
		Validations: []config.ValidationConfig{
			{Name: "enum", Enforcement: config.EnforcementPolicyError, Configuration: map[string]any{"additionPolicy": "Allow"}},
			{Name: "description", Enforcement: config.EnforcementPolicyNone},
		},
		UnhandledEnforcement: config.EnforcementPolicyWarn,
		Conversion:           config.ConversionPolicyNone,
	}
}

// breaks returns the sorted changes that can break an earlier policy.
func breaks(t *testing.T, old, now *apiextensionsv1.CustomResourceDefinition) []string {
	t.Helper()
	configuration := rules()
	if err := config.ValidateConfig(configuration); err != nil {
		t.Fatal(err)
	}
	compares, err := runner.New(configuration, runner.DefaultRegistry())
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	results := compares.Run(old, now)
	for _, result := range results.CRDValidation {
		for _, text := range result.Errors {
			found = append(found, result.Name+": "+text)
		}
	}
	for version, properties := range results.SameVersionValidation {
		for property, comparisons := range properties {
			for _, result := range comparisons {
				for _, text := range result.Errors {
					// API servers have stored the default in earlier policies, which keep it.
					if !strings.Contains(text, "default value removed") {
						found = append(found, version+" "+property+": "+result.Name+": "+text)
					}
				}
				for _, text := range result.Warnings {
					t.Logf("%s %s: %s", version, property, text)
				}
			}
		}
	}
	slices.Sort(found)
	return found
}

// TestBreaks: breaking changes are found, and others are not.
func TestBreaks(t *testing.T) {
	crd := func(properties, required string) *apiextensionsv1.CustomResourceDefinition {
		text := `metadata: {name: things.example.com}
spec:
  scope: Cluster
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, required: [` + required + `], properties: {` + properties + `}}}}
`
		result := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict([]byte(text), result); err != nil {
			t.Fatal(err)
		}
		return result
	}
	const before = "a: {type: string, enum: [x, y]}, b: {type: integer, maximum: 5, default: 3}"
	for name, test := range map[string]struct{ properties, required, want string }{
		"nothing":                    {before, "", ""},
		"a field more":               {before + ", c: {type: string}", "", ""},
		"a value more":               {"a: {type: string, enum: [x, y, z]}, b: {type: integer, maximum: 5, default: 3}", "", ""},
		"a description":              {"a: {type: string, enum: [x, y], description: it}, b: {type: integer, maximum: 5, default: 3}", "", ""},
		"a rule of CEL":              {"a: {type: string, enum: [x, y], x-kubernetes-validations: [{rule: self != 'q'}]}, b: {type: integer, maximum: 5, default: 3}", "", ""},
		"a default less":             {"a: {type: string, enum: [x, y]}, b: {type: integer, maximum: 5}", "", ""},
		"another default":            {"a: {type: string, enum: [x, y]}, b: {type: integer, maximum: 5, default: 4}", "", "default"},
		"a field less":               {"a: {type: string, enum: [x, y]}", "", "existingFieldRemoval"},
		"a value less":               {"a: {type: string, enum: [x]}, b: {type: integer, maximum: 5, default: 3}", "", "enum"},
		"another type":               {"a: {type: string, enum: [x, y]}, b: {type: string}", "", "type"},
		"a lower maximum":            {"a: {type: string, enum: [x, y]}, b: {type: integer, maximum: 4}", "", "maximum"},
		"a field that must be there": {before, "a", "required"},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(breaks(t, crd(before, ""), crd(test.properties, test.required)), "\n")
			if test.want == "" && got != "" || !strings.Contains(got, test.want) {
				t.Errorf("found %q, want %q", got, test.want)
			}
		})
	}
}
