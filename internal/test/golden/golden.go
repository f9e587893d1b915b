// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package golden compares test output with committed files, and rewrites the files with `go test
// -update`. Read the difference before you commit it.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden files, and the tables of pages that tests make")

// Update reports whether to rewrite files instead of comparing them.
func Update() bool { return *update }

// Check compares got with a file of the package's testdata, line by line.
func Check(tb testing.TB, got string, path ...string) {
	tb.Helper()
	file := filepath.Join(append([]string{"testdata"}, path...)...)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			tb.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		tb.Errorf("%s (-want +got), which go test -update rewrites:\n%s", file, diff)
	}
}
