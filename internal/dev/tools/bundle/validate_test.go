// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apimanifests "github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	interfaces "github.com/operator-framework/api/pkg/validation/interfaces"
	"sigs.k8s.io/yaml"
)

const (
	root      = "../../../.."
	bundleDir = root + "/bundle"
)

// validators are those of `operator-sdk bundle validate`, by its names.
var validators = map[string]interfaces.Validators{
	"default":               {validation.ClusterServiceVersionValidator, validation.CustomResourceDefinitionValidator, validation.BundleValidator},
	"operatorhub/v2":        {validation.OperatorHubV2Validator},
	"capabilities":          {validation.StandardCapabilitiesValidator},
	"categories":            {validation.StandardCategoriesValidator},
	"object":                {validation.ObjectValidator},
	"operatorgroup":         {validation.OperatorGroupValidator},
	"community":             {validation.CommunityOperatorValidator},
	"alpha-deprecated-apis": {validation.AlphaDeprecatedAPIsValidator},
	"good-practices":        {validation.GoodPracticesValidator},
	"multiarch":             {validation.MultipleArchitecturesValidator},
}

// excuse is an accepted warning, and the reason.
type excuse struct {
	Validator string `json:"validator"`
	Warning   string `json:"warning"`
	Why       string `json:"why"`
}

// TestValidators: no validator finds an error, and the warnings are exactly those in warnings.yaml.
func TestValidators(t *testing.T) {
	withImageTool(t)
	bundle, err := apimanifests.GetBundleFromDir(bundleDir)
	noError(t, err)
	objects := append(bundle.ObjectsToValidate(), bundle, map[string]string{
		"k8s-version": bundle.CSV.Spec.MinKubeVersion, "container-tools": "podman"})
	var got []string
	for name, group := range validators {
		for _, result := range group.Validate(objects...) {
			for _, failure := range result.Errors {
				t.Errorf("%s: %v", name, failure)
			}
			for _, warning := range result.Warnings {
				got = append(got, name+": "+warning.Detail)
			}
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(excused(t), slices.Compact(got)); diff != "" {
		t.Errorf("warnings are not those of warnings.yaml (-explained +found):\n%s", diff)
	}
}

func excused(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("warnings.yaml")
	noError(t, err)
	var excuses []excuse
	noError(t, yaml.UnmarshalStrict(text, &excuses))
	var result []string
	for _, each := range excuses {
		if each.Why == "" {
			t.Errorf("warnings.yaml does not say why this stays: %s", each.Warning)
		}
		result = append(result, each.Validator+": "+each.Warning)
	}
	slices.Sort(result)
	return result
}

// withImageTool installs a fake podman, which the validator of architectures asks about an image in
// a registry: it describes what `make image` builds.
func withImageTool(t *testing.T) {
	t.Helper()
	const platform = `{"platform": {"os": "linux", "architecture": %q}}`
	script := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = pull ] || echo '{\"manifests\": [%s, %s]}'\n",
		fmt.Sprintf(platform, "amd64"), fmt.Sprintf(platform, "arm64"))
	dir := t.TempDir()
	noError(t, os.WriteFile(filepath.Join(dir, "podman"), []byte(script), 0o755))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
