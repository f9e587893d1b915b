// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package release skips slow tests outside of make test-release.
package release

import (
	"os"
	"strings"
	"testing"
)

// Variable is the environment variable that make integration-release and make test-e2e-release set, so
// that every test runs.
const Variable = "TEST_RELEASE"

// Playing reports whether slow tests run.
func Playing() bool { return os.Getenv(Variable) != "" }

// Only is the first line of a slow test. make test-release runs the test. make test skips it, and
// the tests provenBy show the same behaviour there.
func Only(t *testing.T, provenBy ...string) {
	t.Helper()
	if !Playing() {
		t.Skipf("make test-release runs it; in make test, %s show its behaviour", strings.Join(provenBy, ", "))
	}
}
