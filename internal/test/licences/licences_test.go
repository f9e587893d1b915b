// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package licences

import (
	_ "embed"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

//go:embed allowed.txt
var allowed string

// TestLicences: each module has a licence, and only licences that are allowed.
func TestLicences(t *testing.T) {
	may := allowedLicences()
	modules, err := Linked(t.Context(), "../../..", "linux")
	expect.NoError(t, err)
	if len(modules) < 40 {
		t.Fatalf("%d modules are linked into the binary: %v", len(modules), modules)
	}
	used := map[string]bool{}
	for module, directory := range modules {
		found, err := In(directory)
		if err != nil {
			t.Errorf("%s: %v", module, err)
		}
		if len(found) == 0 {
			t.Errorf("%s has no licence in %s", module, directory)
		}
		for _, licence := range found {
			if used[licence] = true; !may[licence] {
				t.Errorf("%s has the licence %s, which allowed.txt does not allow", module, licence)
			}
		}
	}
	for licence := range may {
		if !used[licence] {
			t.Errorf("allowed.txt allows %s, which nothing has", licence)
		}
	}
	t.Logf("%d modules: %v", len(modules), slices.Sorted(maps.Keys(used)))
}

// TestForeignLicences: a licence that is not allowed is detected.
func TestForeignLicences(t *testing.T) {
	const text = "This program is free software: you can redistribute it and/or modify it under the terms of the GNU General Public License " +
		"as published by the Free Software Foundation, either version 3 of the License, or (at your option) any later version."
	directory := t.TempDir()
	expect.NoError(t, os.WriteFile(filepath.Join(directory, "LICENSE"), []byte(text), 0o600))
	found, err := In(directory)
	expect.NoError(t, err)
	if !slices.ContainsFunc(found, func(licence string) bool { return !allowedLicences()[licence] }) {
		t.Error("it passes")
	}
}

func allowedLicences() map[string]bool {
	may := map[string]bool{}
	for line := range strings.Lines(allowed) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			may[line] = true
		}
	}
	return may
}
