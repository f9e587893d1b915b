// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/operator/verify"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestVerifyJSON(t *testing.T) {
	object := `{"apiVersion":"example.com/v1beta1","kind":"CronTab","metadata":{"name":"a"},"hostPort":"a:1","replicas":"<many>"}`
	stdout, _, err := runWith(object, "verify", "--policy", sampleFile("2-policy.yaml"), "--crd", sampleFile("3-crd-both.yaml"), "-f", "-", "-o", "json")
	expect.NoError(t, err)
	report := verify.Report{}
	expect.NoError(t, json.Unmarshal([]byte(stdout), &report))
	expect.Equal(t, "format, outcome, number and source of the objects", []any{verify.ReportFormat, verify.Passed, 1, "stdin"},
		[]any{report.Format, report.Outcome, report.Objects, report.ObjectsFrom})
	if len(report.Findings) != 1 || report.Findings[0].Kind != verify.InvalidBefore || report.Findings[0].Path != ".replicas" {
		t.Errorf("findings are %+v", report.Findings)
	}
}
