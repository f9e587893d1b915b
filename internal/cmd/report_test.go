// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	args := []string{"report", "--policy", sampleFile("2-policy.yaml"), "--crd", sampleFile("3-crd-both.yaml"), "-f", sampleFile("objects.yaml")}
	stdout, stderr, err := run(append(args, "--timeless")...)
	if err != nil || stderr != "" {
		t.Fatalf("%v, stderr %q", err, stderr)
	}
	for _, want := range []string{
		"<!doctype html>\n", "<h1>CronTab ", "Nothing is lost", "3 objects from " + sampleFile("objects.yaml"),
		"<dd>" + sampleFile("2-policy.yaml") + " and " + sampleFile("3-crd-both.yaml") + "</dd>",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("there is no %q", want)
		}
	}
	if again, _, _ := run(append(args, "--timeless")...); again != stdout {
		t.Error("the same input made another file")
	}
	if timed, _, _ := run(args...); !strings.Contains(timed, "<p>Made <time ") {
		t.Error("it does not say when it was made")
	}
}

func TestReportExitCodes(t *testing.T) {
	cases := filepath.Join("..", "verify", "testdata")
	with := func(world string, more ...string) []string {
		files := filepath.Join(cases, world)
		return append([]string{"--policy", filepath.Join(files, "policy.yaml"), "--crd", filepath.Join(files, "crd.yaml")}, more...)
	}
	image := filepath.Join("..", "..", "config", "samples", "crontab-image", "policy.yaml")
	for name, test := range map[string]struct {
		args []string
		code int
		// report is what the file says, empty where there is none.
		report string
		want   string
	}{
		"something dropped": {with("drops", "-f", filepath.Join(cases, "drops", "objects.yaml")), 0, "Nothing is lost except what the rules drop", ""},
		"something lost":    {with("pruned", "-f", filepath.Join(cases, "pruned", "objects.yaml")), 1, "Problems found", "problems found; see the report"},
		"invalid rules":     {with("invalid-rules"), 1, "The rules are not valid", "problems found; see the report"},
		"own converter":     {[]string{"--policy", image, "--crd", sampleFile("3-crd-both.yaml")}, 0, "Not converted by rules", ""},
		"no such file":      {[]string{"--policy", "none.yaml", "--crd", sampleFile("3-crd-both.yaml")}, 2, "", "stat none.yaml"},
		"two sources":       {with("drops", "-f", "x", "--live"), 2, "", "-f and --live exclude each other"},
		"namespace":         {with("drops", "--namespace", "a"), 2, "", "--namespace selects objects of a cluster: add --live"},
		"which policy":      {nil, 2, "", "which policy?"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
			stdout, _, err := run(append([]string{"report"}, test.args...)...)
			if code := ExitCode(err); code != test.code {
				t.Errorf("exit code %d, want %d: %v", code, test.code, err)
			}
			if err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want %s", err, test.want)
			}
			if !strings.Contains(stdout, test.report) || test.report == "" && stdout != "" {
				t.Errorf("the report does not say %q", test.report)
			}
		})
	}
}

// TestReportWriteError writes to a file that is full, and to a writable one.
func TestReportWriteError(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	root := NewRootCommand()
	root.SetArgs([]string{"report", "--policy", sampleFile("2-policy.yaml"), "--crd", sampleFile("3-crd-both.yaml")})
	root.SetOut(file)
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := root.Execute(); ExitCode(err) != exitUnable || !strings.Contains(err.Error(), "write the report") {
		t.Errorf("a report that was not written ends with %v", err)
	}
}
