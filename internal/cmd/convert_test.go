// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sampleFile is a file of the sample with host and port.
func sampleFile(name string) string {
	return filepath.Join("..", "..", "config", "samples", "crontab-hostport", name)
}

// write creates a temporary file.
func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// runWith is run with something on stdin.
func runWith(stdin string, args ...string) (stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	root := NewRootCommand()
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&out)
	root.SetErr(&errs)
	root.SetArgs(args)
	err = root.Execute()
	return out.String(), errs.String(), err
}
