// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// sampleFile is a file of the sample with host and port.
func sampleFile(name string) string {
	return filepath.Join("..", "..", "..", "config", "samples", "crontab-hostport", name)
}

// write creates a temporary file.
func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	expect.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}
