// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/operator/verify"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestVerifyJSON(t *testing.T) {
	object := `{"apiVersion":"example.com/v1beta1","kind":"CronTab","metadata":{"name":"a"},"replicas":"<many>"}`
	stdout, _, err := runWith(object, "verify", "--policy", sampleFile("2-policy.yaml"), "--crd", sampleFile("3-crd-both.yaml"), "-f", "-", "-o", "json")
	expect.NoError(t, err)
	report := verify.Report{}
	expect.NoError(t, json.Unmarshal([]byte(stdout), &report))
	if report.Format != verify.ReportFormat || report.Outcome != verify.Passed || report.Objects != 1 || report.ObjectsFrom != "stdin" {
		t.Errorf("report is %+v", report)
	}
	if len(report.Findings) != 1 || report.Findings[0].Kind != verify.InvalidBefore || report.Findings[0].Path != ".replicas" {
		t.Errorf("findings are %+v", report.Findings)
	}
}

// TestHelp names every subcommand on the first page.
func TestHelp(t *testing.T) {
	stdout, _, err := run()
	expect.NoError(t, err)
	for _, command := range NewRootCommand().Commands() {
		if !strings.Contains(stdout, "\n  "+command.Name()+" ") {
			t.Errorf("%s is not in the help:\n%s", command.Name(), stdout)
		}
	}
}
