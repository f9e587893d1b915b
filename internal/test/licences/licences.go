// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package licences

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/google/licensecheck"
)

// licenceFile matches the names of licence files.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|patents)([.-][a-z0-9]+)?$`)

// leastCovered is the part of a file, in percent, that known licences must cover.
const leastCovered = 75

// Linked returns the modules in the binary for an operating system: from path@version to the folder
// of the sources. root is the root of the checkout.
func Linked(ctx context.Context, root, system string) (map[string]string, error) {
	list := exec.CommandContext(ctx, "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}@{{.Version}}\t{{.Dir}}{{end}}{{end}}", ".")
	list.Dir = root
	list.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("%v: %w", list.Args, err)
	}
	modules := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if module, directory, found := strings.Cut(strings.TrimSpace(line), "\t"); found {
			modules[module] = directory
		}
	}
	return modules, nil
}

// In returns the licences of the files in a module's root, if any. It returns an error for a file
// that is mostly unknown text.
func In(directory string) ([]string, error) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, entry := range entries {
		if !licenceFile.MatchString(entry.Name()) {
			continue
		}
		path := filepath.Join(directory, entry.Name())
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		coverage := licensecheck.Scan(text)
		if coverage.Percent < leastCovered {
			return nil, fmt.Errorf("%.0f%% of %s are of no known licence", 100-coverage.Percent, path)
		}
		for _, match := range coverage.Match {
			found = append(found, match.ID)
		}
	}
	return found, nil
}
