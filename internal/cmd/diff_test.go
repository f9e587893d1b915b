// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/diff"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestDiff(t *testing.T) {
	policy, crd := sampleFile("2-policy.yaml"), sampleFile("3-crd-both.yaml")
	changed := write(t, "lossy.yaml", strings.Replace(readFile(t, policy), "        rules:\n", "        rules:\n        - drop: {from: .note}\n", 1))
	foreign := write(t, "foreign.yaml", strings.Replace(readFile(t, policy), "conversion-operator.io/", "example.org/", 1))
	for name, test := range map[string]struct {
		args   []string
		code   int
		stdout string
		stderr string
	}{
		"the same":       {[]string{"--before", policy, "-f", policy, "-f", crd}, 0, "crontabs.example.com: conversions do not change\n", ""},
		"another policy": {[]string{"--before", policy, "-f", changed, "-f", crd}, 1, "crontabs.example.com: something gets worse\n", "Error: something gets worse; see the report\n"},
		"another group":  {[]string{"--before", policy, "-f", changed, "-f", crd, "-f", foreign}, 1, "crontabs.example.com: something gets worse\n", "Error: something gets worse; see the report\n"},
		"the way back":   {[]string{"--before", changed, "-f", policy, "-f", crd}, 0, "crontabs.example.com: nothing gets worse\n", ""},
		"another schema": {[]string{"--before", sampleFile("1-crd-v1beta1.yaml"), "--before", policy, "-f", crd}, 0, "crontabs.example.com: nothing gets worse\n", ""},
		"no policy":      {[]string{"--before", crd, "-f", crd}, 2, "", "crontabs.example.com: no ConversionPolicy found\nError: there is nothing to compare: pass a ConversionPolicy with -f\n"},
		"no schema":      {[]string{"--before", policy, "-f", policy}, 2, "", "Error: crontabs.example.com: no CustomResourceDefinition found: pass it with -f\n"},
		"nothing":        {nil, 2, "", "Error: what changes? Pass policies or CustomResourceDefinitions with -f\n"},
		"stdin twice":    {[]string{"--before", "-", "-f", "-"}, 2, "", "Error: only one of -f and --before can read stdin\n"},
		"other files":    {[]string{"-f", sampleFile("objects.yaml")}, 2, "", "Error: " + sampleFile("objects.yaml") + ": neither a ConversionPolicy nor a CustomResourceDefinition found\n"},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, err := run(append([]string{"diff"}, test.args...)...)
			title, _, _ := strings.Cut(stdout, "\n")
			if title+"\n" != test.stdout && stdout != test.stdout || stderr != test.stderr || ExitCode(err) != test.code {
				t.Errorf("exit code %d, want %d; stderr %q, want %q; stdout is\n%s", ExitCode(err), test.code, stderr, test.stderr, stdout)
			}
		})
	}
}

// TestDiffObjects passes objects in addition to manifests.
func TestDiffObjects(t *testing.T) {
	folder := filepath.Join("..", "diff", "testdata", "preserved-data")
	args := []string{"diff"}
	for _, file := range []string{"policy", "crd"} {
		args = append(args, "--before", filepath.Join(folder, "before-"+file+".yaml"), "-f", filepath.Join(folder, "after-"+file+".yaml"))
	}
	stdout, _, err := run(append(args, "-f", filepath.Join(folder, "after-objects.yaml"))...)
	const want = "  2 objects preserve .spec.note of v1: it becomes data in v2 (.spec.note) by a migration run\n"
	if !strings.Contains(stdout, want) || ExitCode(err) != 1 {
		t.Errorf("exit code %d; stdout lacks %q:\n%s", ExitCode(err), want, stdout)
	}
}

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

func TestDiffDraftsJSON(t *testing.T) {
	folder := filepath.Join("..", "diff", "testdata", "fields-moved")
	stdout, _, err := run("diff", "--before", filepath.Join(folder, "before-policy.yaml"), "--before", filepath.Join(folder, "before-crd.yaml"),
		"-f", filepath.Join(folder, "after-crd.yaml"), "-o", "json")
	report := diff.Report{}
	expect.NoError(t, json.Unmarshal([]byte(stdout), &report))
	if ExitCode(err) != exitFound || len(report.Policies) != 1 || len(report.Policies[0].Spokes) != 1 {
		t.Fatalf("exit code %d, report %+v", ExitCode(err), report)
	}
	spoke := report.Policies[0].Spokes[0]
	if invalid := spoke.Invalid(); len(invalid) != 1 || invalid[0].Replacement == nil || invalid[0].Replacement.Rule.Format.To["port"] != ".spec.portNumber" || len(spoke.Drafted) != 2 {
		t.Errorf("the spoke is %+v", spoke)
	}
}

func readFile(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
