// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// lineOf returns the number of the line that contains a text.
func lineOf(t *testing.T, file, text string) int {
	t.Helper()
	content, err := os.ReadFile(file)
	expect.NoError(t, err)
	before, _, found := strings.Cut(string(content), text)
	if !found {
		t.Fatalf("%s lacks %q", file, text)
	}
	return strings.Count(before, "\n") + 1
}

// sarifOf returns the findings in SARIF, each as RULE LEVEL FILE:LINE.
func sarifOf(t *testing.T, text string) []string {
	t.Helper()
	var log struct {
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct{ Rules []struct{ ID string } }
			}
			Results []struct {
				RuleID, Level string
				Locations     []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine int }
					}
				}
			}
		}
	}
	expect.NoError(t, json.Unmarshal([]byte(text), &log))
	if log.Version != "2.1.0" || len(log.Runs) != 1 {
		t.Fatalf("it is %s", text)
	}
	known := map[string]bool{}
	for _, rule := range log.Runs[0].Tool.Driver.Rules {
		known[rule.ID] = true
	}
	var found []string
	for _, result := range log.Runs[0].Results {
		if !known[result.RuleID] {
			t.Errorf("the rule %s is not described", result.RuleID)
		}
		place := "nowhere"
		if len(result.Locations) > 0 {
			physical := result.Locations[0].PhysicalLocation
			place = fmt.Sprintf("%s:%d", physical.ArtifactLocation.URI, physical.Region.StartLine)
		}
		found = append(found, result.RuleID+" "+result.Level+" "+place)
	}
	return found
}

// TestFindings: verify, diff and audit name the line of a rule or a definition.
func TestFindings(t *testing.T) {
	t.Parallel()
	crd := sampleFile("3-crd-both.yaml")
	content, err := os.ReadFile(sampleFile("2-policy.yaml"))
	expect.NoError(t, err)
	policy := string(content)
	wrong := write(t, "wrong.yaml", "# two\n---\n"+strings.Replace(policy, "host: .host", "host: .hots", 1))
	dropping := write(t, "dropping.yaml", policy+"---\n") // the rule is added in the list of rules
	const rules = "        rules:\n"
	expect.NoError(t, os.WriteFile(dropping, []byte(strings.Replace(policy, rules, rules+"        - drop: {from: .note}\n", 1)), 0o600))
	bare := write(t, "bare.yaml", strings.Replace(policy, policy[strings.Index(policy, rules):strings.Index(policy, "  migration:")], "", 1))
	objects := sampleFile("objects.yaml")
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"a rule that is not valid", []string{"verify", "--policy", wrong, "--crd", crd}, fmt.Sprintf("PolicyInvalid error %s:%d", wrong, lineOf(t, wrong, "- format"))},
		{"a value that is dropped", []string{"verify", "--policy", dropping, "--crd", crd, "-f", objects}, fmt.Sprintf("Dropped note %s:%d", dropping, lineOf(t, dropping, "- drop"))},
		{"a field that gets lost", []string{"diff", "--before", bare, "--before", crd, "-f", dropping, "-f", crd}, fmt.Sprintf("FieldWorse error %s:%d", dropping, lineOf(t, dropping, "- drop"))},
		{"a definition at risk", []string{"audit", "-f", crd, "--severity", "note"}, fmt.Sprintf("NoneLosesFields error %s:%d", crd, lineOf(t, crd, "versions:"))},
	} {
		stdout, stderr, err := runWith("", append(tt.args, "-o", "sarif")...)
		found := strings.Join(sarifOf(t, stdout), "\n")
		if !strings.Contains(found, tt.want) {
			t.Errorf("%s: %q is missing in\n%s\n%s", tt.name, tt.want, found, stderr)
		}
		stdout, _, again := runWith("", append(tt.args, "-o", "junit")...)
		if ExitCode(err) != ExitCode(again) {
			t.Errorf("%s: the exit code depends on the format: %d and %d", tt.name, ExitCode(err), ExitCode(again))
		}
		wantJUnit(t, tt.name, stdout, strings.Count(found, " error "), found)
	}
}

// wantJUnit checks that a report in JUnit counts its tests, and fails for each error.
func wantJUnit(t *testing.T, what, text string, errors int, found string) {
	t.Helper()
	var report struct {
		Suites []struct {
			Tests    int `xml:"tests,attr"`
			Failures int `xml:"failures,attr"`
			Cases    []struct {
				File    string    `xml:"file,attr"`
				Failure *struct{} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	expect.NoError(t, xml.Unmarshal([]byte(text), &report))
	suite := report.Suites[0]
	failed := 0
	for _, test := range suite.Cases {
		if test.Failure != nil {
			failed++
		}
	}
	if suite.Tests != len(suite.Cases) || suite.Failures != failed || failed != errors || len(suite.Cases) <= failed {
		t.Errorf("%s: %d tests and %d failures, with %d and %d in it, for\n%s", what, suite.Tests, suite.Failures, len(suite.Cases), failed, found)
	}
}
