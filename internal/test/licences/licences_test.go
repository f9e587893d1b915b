// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package licences

import (
	_ "embed"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/licensecheck"
)

//go:embed allowed.txt
var allowed string

// licenceFile is what files with licences are called.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|patents)(\.[a-z]+)?$`)

// leastCovered is how much of a text must be that of known licences, in percent.
const leastCovered = 75

// TestLicences: each module has a licence, and only licences that are allowed.
func TestLicences(t *testing.T) {
	may := allowedLicences()
	modules := linked(t)
	if len(modules) < 40 {
		t.Fatalf("%d modules are linked into the binary: %v", len(modules), modules)
	}
	used := map[string]bool{}
	for module, directory := range modules {
		found := licencesIn(t, module, directory)
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

// TestForeignLicences are told from allowed ones.
func TestForeignLicences(t *testing.T) {
	const text = "This program is free software: you can redistribute it and/or modify it under the terms of the GNU General Public License " +
		"as published by the Free Software Foundation, either version 3 of the License, or (at your option) any later version."
	directory := t.TempDir()
	if err := os.WriteFile(filepath.Join(directory, "LICENSE"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, licence := range licencesIn(t, "example.com/foreign", directory) {
		if !allowedLicences()[licence] {
			return
		}
	}
	t.Error("it passes")
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

// linked are the modules that the binary is made of, and where their sources are.
func linked(t *testing.T) map[string]string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}@{{.Version}}\t{{.Dir}}{{end}}{{end}}", ".")
	list.Dir = "../../.."
	list.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		t.Fatalf("%v: %v", list.Args, err)
	}
	modules := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if module, directory, found := strings.Cut(strings.TrimSpace(line), "\t"); found {
			modules[module] = directory
		}
	}
	return modules
}

// licencesIn are those in the files of a module's root.
func licencesIn(t *testing.T, module, directory string) []string {
	t.Helper()
	entries, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, entry := range entries {
		if !licenceFile.MatchString(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(directory, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		coverage := licensecheck.Scan(text)
		if coverage.Percent < leastCovered {
			t.Errorf("%s: %.0f%% of %s are of no known licence", module, 100-coverage.Percent, entry.Name())
		}
		for _, match := range coverage.Match {
			found = append(found, match.ID)
		}
	}
	return found
}
