// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/cli/cmd"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// atOnce is the number of parallel symptoms, which mostly wait: objects of a new CRD cannot be
// created for two seconds.
const atOnce = 8

// programs are the names of the operator's program.
var programs = []string{"conversion-operator", "kubectl-conversion"}

// TestMain also acts as the operator's program if it is called by one of its names, so that the
// tests need no build.
func TestMain(m *testing.M) {
	if slices.Contains(programs, filepath.Base(os.Args[0])) {
		os.Exit(cmd.ExitCode(cmd.NewCommand(os.Args).Execute()))
	}
	testenv.Parallel(atOnce)
	os.Exit(m.Run())
}

// binaries returns a folder with the programs.
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
