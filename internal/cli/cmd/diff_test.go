// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestDiffDrafts pastes the rules that the command drafts for a new version into the policy, which is then valid.
func TestDiffDrafts(t *testing.T) {
	folder := filepath.Join("..", "diff", "testdata", "spoke-added")
	policy, crd := filepath.Join(folder, "after-policy.yaml"), filepath.Join(folder, "after-crd.yaml")
	args := []string{"diff", "--before", policy, "--before", filepath.Join(folder, "before-crd.yaml"), "-f", crd}
	stdout, stderr, err := run(args...)
	_, spoke, found := strings.Cut(stdout, "Add to spec.converter.declarative.spokes, and test:\n")
	if err != nil || !found {
		t.Fatalf("%v: %s: stdout has no spoke:\n%s", err, stderr, stdout)
	}
	// In a policy, spokes are four columns further to the right.
	completed := write(t, "policy.yaml", readFile(t, policy)+strings.ReplaceAll("\n"+strings.TrimSuffix(spoke, "\n"), "\n", "\n    "))
	if stdout, stderr, err := run("verify", "--policy", completed, "--crd", crd); err != nil {
		t.Errorf("verify refuses the policy: %s\n%s", stderr, stdout)
	}
	// Then nothing is missing, except what is ambiguous.
	stdout, _, err = run(append(args, "-f", completed)...)
	if err != nil || strings.Contains(stdout, "Drafted") || !strings.Contains(stdout, "Rules for v2: 3 rules still valid\n") {
		t.Errorf("%v, stdout:\n%s", err, stdout)
	}
}
