//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conversion-operator/conversion-operator/internal/audit"
)

// auditLive audits an API server with a definition whose versions differ, a
// policy for it, and nobody who reconciles that.
func auditLive(t *testing.T, kubeconfig string) {
	stdout, stderr, err := run("audit", "--kubeconfig", kubeconfig, "-o=json")
	report := audit.Report{}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatalf("%v; stderr is %q", err, stderr)
	}
	var got []string
	for _, finding := range report.Findings {
		got = append(got, fmt.Sprintf("%s %s %s %s", finding.Severity, finding.CRD, finding.ID, finding.Version))
	}
	want := []string{
		"Error crontabs.example.com NoneLosesFields v1",
		"Warning crontabs.example.com NoneHidesFields v1",
		"Warning crontabs.example.com PolicyNotReady ",
	}
	if diff := cmp.Diff(want, got); diff != "" || ExitCode(err) != 1 || len(report.NotChecked) > 0 {
		t.Errorf("findings (-want +got):\n%s; exit code %d, not checked: %v", diff, ExitCode(err), report.NotChecked)
	}
	if stdout, stderr, err := run("audit", "--kubeconfig", kubeconfig, "crontabs.example.com", "--severity=error", "--no-reads"); ExitCode(err) != 1 ||
		!strings.Contains(stdout, "NoneLosesFields") || !strings.HasPrefix(stderr, "1 definition: 1 error, 0 warnings, 0 notes; 2 milder not shown") {
		t.Errorf("%v; stdout is\n%s\nstderr is\n%s", err, stdout, stderr)
	}
	if _, stderr, err := run("audit", "--kubeconfig", kubeconfig, "--as=nobody"); ExitCode(err) != 2 || !strings.Contains(stderr, `cannot list resource "customresourcedefinitions"`) {
		t.Errorf("%v; stderr is %q", err, stderr)
	}
}
