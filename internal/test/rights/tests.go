// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// Tests are the names of all tests below root, of whatever build.
func Tests(root string) (map[string]bool, error) {
	names := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "bin" || entry.Name() == ".git"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, match := range testFunction.FindAllSubmatch(text, -1) {
			names[string(match[1])] = true
		}
		return err
	})
	return names, err
}
