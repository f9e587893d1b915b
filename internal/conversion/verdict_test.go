// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// checkOwners walks every schema by itself, down to its scalars, and looks for
// the leaves that have each of them: there must be one.
func checkOwners(t *testing.T, result Result, schemas map[string]*schema.Structural) {
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
		for _, version := range []string{verdict.Version, result.Plan.Hub} {
			of := leaves[[2]string{verdict.Version, version}]
			for name, property := range schemas[version].Properties {
				if name != "apiVersion" && name != "kind" && name != "metadata" {
					checkOwner(t, of, version, "."+name, &property)
				}
			}
		}
	}
}

func checkOwner(t *testing.T, leaves map[string]int, version, at string, s *schema.Structural) {
	t.Helper()
	for name, property := range s.Properties {
		checkOwner(t, leaves, version, at+"."+name, &property)
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
