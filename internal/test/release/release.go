// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package release leaves tests that take long to make test-release.
package release

import (
	"os"
	"strings"
	"testing"
)

// Variable is the environment variable that is set where every test runs: by
// make integration-release and make e2e-release.
const Variable = "TEST_RELEASE"

// Playing reports whether every test runs.
func Playing() bool { return os.Getenv(Variable) != "" }

// Only is the first line of a test that takes long. make test-release runs it, and
// make test does not: there the tests provenBy show the same behaviour.
func Only(t *testing.T, provenBy ...string) {
	t.Helper()
	if !Playing() {
		t.Skipf("make test-release runs it; in make test, %s show its behaviour", strings.Join(provenBy, ", "))
	}
}
