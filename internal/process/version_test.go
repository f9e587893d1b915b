// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestVersion: the linker decides, and without it, neither is empty.
func TestVersion(t *testing.T) {
	before, beforeRevision := version, revision
	t.Cleanup(func() { version, revision = before, beforeRevision })
	version, revision = "v1.2.3", "0123abcd"
	release, commit := Version()
	expect.Equal(t, "version and commit", []string{"v1.2.3", "0123abcd"}, []string{release, commit})

	version, revision = "", ""
	if release, commit = Version(); release == "" || commit == "" {
		t.Errorf("%q, %q", release, commit)
	}
}
