//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/cmd"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// atOnce is how many symptoms are played at once. They wait more than they work:
// for two seconds after it is defined, a kind's objects are not created.
const atOnce = 8

// programs are the names under which people call the operator's program.
var programs = []string{"conversion-operator", "kubectl-conversion"}

// TestMain is the program of the operator, too, where it is called by its name: then
// nothing has to be built for commands to be typed.
func TestMain(m *testing.M) {
	if slices.Contains(programs, filepath.Base(os.Args[0])) {
		os.Exit(cmd.ExitCode(cmd.NewCommand(os.Args).Execute()))
	}
	testenv.Parallel(atOnce)
	os.Exit(m.Run())
}

// binaries is a folder with the programs.
func binaries(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	expect.NoError(t, err)
	folder := t.TempDir()
	for _, name := range programs {
		expect.NoError(t, os.Symlink(self, filepath.Join(folder, name)))
	}
	return folder
}
