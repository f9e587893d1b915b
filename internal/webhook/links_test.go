// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestLinksNoSchemaLibraries checks the dependencies of a converter pod: it executes a ruleset, and
// neither reads CustomResourceDefinitions nor validates schemas. The linter only checks direct
// imports.
func TestLinksNoSchemaLibraries(t *testing.T) {
	linked, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	expect.NoError(t, err)
	packages := strings.Fields(string(linked))
	if len(packages) < 200 {
		t.Fatalf("go list names %d packages only", len(packages))
	}
	for _, name := range packages {
		for _, denied := range []string{"k8s.io/apiextensions-apiserver", "github.com/conversion-operator/conversion-operator/api",
			"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile", "github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape/strip"} {
			if name == denied || strings.HasPrefix(name, denied+"/") {
				t.Errorf("a converter pod links %s", name)
			}
		}
	}
}
