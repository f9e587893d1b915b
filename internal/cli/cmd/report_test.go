// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestReport(t *testing.T) {
	args := []string{"report", "--policy", sampleFile("2-policy.yaml"), "--crd", sampleFile("3-crd-both.yaml"), "-f", sampleFile("objects.yaml")}
	stdout, stderr, err := run(append(args, "--timeless")...)
	expect.NoError(t, err)
	expect.Equal(t, "stderr", "", stderr)
	again, _, _ := run(append(args, "--timeless")...)
	expect.Equal(t, "another file of the same input", stdout, again)
	timed, _, _ := run(args...)
	expect.Contains(t, "the report", timed, "<p>Made <time ")
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
	err = root.Execute()
	checkEnd(t, exitUnable, err, fmt.Sprint(err), "write the report")
}
