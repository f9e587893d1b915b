// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestReport(t *testing.T) {
	args := []string{"report", "--policy", sampleFile("2-policy.yaml"), "--crd", sampleFile("3-crd-both.yaml"), "-f", sampleFile("objects.yaml")}
	stdout, stderr, err := run(append(args, "--timeless")...)
	if err != nil || stderr != "" {
		t.Fatalf("%v, stderr %q", err, stderr)
	}
	if again, _, _ := run(append(args, "--timeless")...); again != stdout {
		t.Error("the same input made another file")
	}
	if timed, _, _ := run(args...); !strings.Contains(timed, "<p>Made <time ") {
		t.Error("it does not say when it was made")
	}
}

// TestReportWriteError writes to a file that is full, and to a writable one.
func TestReportWriteError(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "report.html"))
	expect.NoError(t, err)
	root := NewRootCommand()
	root.SetArgs([]string{"report", "--policy", sampleFile("2-policy.yaml"), "--crd", sampleFile("3-crd-both.yaml")})
	root.SetOut(file)
	expect.NoError(t, root.Execute())
	expect.NoError(t, file.Close())
	if err := root.Execute(); ExitCode(err) != exitUnable || !strings.Contains(err.Error(), "write the report") {
		t.Errorf("a report that was not written ends with %v", err)
	}
}
