// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conversion-operator/conversion-operator/internal/verify"
)

// timed matches the one line of a report that differs between runs.
var timed = regexp.MustCompile(`(?m)^([0-9,]+ conversions), .* on average\.$`)

func TestVerify(t *testing.T) {
	stdout, stderr, err := run("verify", "--policy", sampleFile("2-policy.yaml"), "--crd", sampleFile("3-crd-both.yaml"), "-f", sampleFile("objects.yaml"))
	if err != nil || stderr != "" {
		t.Fatalf("%v, stderr %q", err, stderr)
	}
	want := `# crontabs.example.com: nothing is lost

Hub v1, versions v1, v1beta1, ruleset ` + "`HASH`" + `.
3 objects from FILE.
25 conversions.

## Round trips
`
	got := timed.ReplaceAllString(stdout, "$1.")
	got = regexp.MustCompile("`[0-9a-f]{16}`").ReplaceAllString(got, "`HASH`")
	got = strings.ReplaceAll(got, sampleFile("objects.yaml"), "FILE")
	if diff := cmp.Diff(want, got[:min(len(want), len(got))]); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

func TestVerifyJSON(t *testing.T) {
	object := `{"apiVersion":"example.com/v1beta1","kind":"CronTab","metadata":{"name":"a"},"replicas":"<many>"}`
	stdout, _, err := runWith(object, "verify", "--policy", sampleFile("2-policy.yaml"), "--crd", sampleFile("3-crd-both.yaml"), "-f", "-", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	report := verify.Report{}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatal(err)
	}
	if report.Format != verify.ReportFormat || report.Outcome != verify.Passed || report.Objects != 1 || report.ObjectsFrom != "stdin" {
		t.Errorf("report is %+v", report)
	}
	if len(report.Findings) != 1 || report.Findings[0].Kind != verify.InvalidBefore || report.Findings[0].Path != ".replicas" {
		t.Errorf("findings are %+v", report.Findings)
	}
}

func TestVerifyExitCodes(t *testing.T) {
	policy, crd := sampleFile("2-policy.yaml"), sampleFile("3-crd-both.yaml")
	cases := filepath.Join("..", "verify", "testdata")
	for name, test := range map[string]struct {
		args   []string
		code   int
		report string
		want   string
	}{
		"only rules":      {[]string{"--policy", policy, "--crd", crd}, 0, "nothing is lost", ""},
		"something lost":  {[]string{"--policy", filepath.Join(cases, "pruned", "policy.yaml"), "--crd", filepath.Join(cases, "pruned", "crd.yaml"), "-f", filepath.Join(cases, "pruned", "objects.yaml")}, 1, "problems found", "problems found; see the report"},
		"something drops": {[]string{"--policy", filepath.Join(cases, "drops", "policy.yaml"), "--crd", filepath.Join(cases, "drops", "crd.yaml"), "-f", filepath.Join(cases, "drops", "objects.yaml")}, 0, "nothing is lost except what the rules drop", ""},
		"wrong rules":     {[]string{"--policy", filepath.Join(cases, "invalid-rules", "policy.yaml"), "--crd", filepath.Join(cases, "invalid-rules", "crd.yaml")}, 2, "the rules are not valid", "the policy is not valid; see the report"},
		"a missing file":  {[]string{"--policy", policy, "--crd", crd, "-f", "nowhere"}, 2, "", "stat nowhere: no such file or directory"},
		"no policy":       {[]string{"--crd", crd}, 2, "", "--policy is required: the file of the ConversionPolicy"},
		"which policy":    {[]string{"--live"}, 2, "", "which policy? Name it as the argument, for example crontabs.example.com, or pass a file with --policy"},
		"a wrong form":    {[]string{"-o", "table"}, 2, "", `--output must be text, json, yaml, sarif or junit, is "table"`},
		"both":            {[]string{"--live", "-f", "x"}, 2, "", "-f and --live exclude each other: objects come from files, or from a cluster"},
		"a selector":      {[]string{"-l", "a=b"}, 2, "", "--selector selects objects of a cluster: add --live"},
		"no selector":     {[]string{"--live", "-l", "a=(b"}, 2, "", "--selector is not a label selector: unable to parse requirement: found '(', expected: identifier"},
		"a sample":        {[]string{"--live", "--sample=-1"}, 2, "", "--sample must not be negative, is -1"},
		"a page":          {[]string{"--live", "--page-size=0"}, 2, "", "--page-size must be at least 1, is 0"},
		"a kubeconfig":    {[]string{"--live", "--kubeconfig=nowhere", "x"}, 2, "", "find the API server: stat nowhere: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, err := run(append([]string{"verify"}, test.args...)...)
			if code := ExitCode(err); code != test.code {
				t.Errorf("exit code is %d, want %d: %v", code, test.code, err)
			}
			title, _, _ := strings.Cut(stdout, "\n")
			_, title, _ = strings.Cut(title, ": ")
			if title != test.report {
				t.Errorf("the report begins with %q, want %q", title, test.report)
			}
			if test.want != "" && stderr != "Error: "+test.want+"\n" {
				t.Errorf("stderr is %q, want %q", stderr, test.want)
			}
		})
	}
}

// TestHelp names every subcommand on the first page.
func TestHelp(t *testing.T) {
	stdout, _, err := run()
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range NewRootCommand().Commands() {
		if !strings.Contains(stdout, "\n  "+command.Name()+" ") {
			t.Errorf("%s is not in the help:\n%s", command.Name(), stdout)
		}
	}
}
