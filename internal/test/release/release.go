// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package release skips slow tests outside of make test-release. If a new story takes more than a
// minute, begin it with Only.
//
// These stages of make test-release (internal/dev/tools/test.sh) are not in make test, which shows
// the same behaviour by other tests:
//
//	test-e2e-release      migrates thousands of objects, stops the operator or starts several
//	                      versions of it, and tests the local cluster. With all stories, it also
//	                      checks that no right is unused. make test: what each story names in Only
//	integration-release   API servers without a watch cache, and a migration with a lagging API
//	                      server. make test: what Only names. And 100,000 requests attack a converter,
//	                      of which make test has 500
//	STAGE@VERSION         builds other versions of Kubernetes. make test: the recorded answers of
//	                      each version, in package answers
//	certmanager           builds another project. make test: TestCertManager and TestInjected
//	crossplane            builds another project. make test: TestComposite
//	velero                builds another project. make test: package internal/cli/backup
//	realworld             builds other projects. make test: the laws of internal/engine/conversion
//	promtool              builds another project. make test-ci: internal/test/monitoring
//	fuzz                  each fuzzer runs for FUZZTIME. make test-ci: fuzz-short
//	soak-short            random actions for three minutes. make test: internal/test/manager, which
//	                      takes them in order, and the unit tests of internal/test/soak
//	reproducible, sbom    check artifacts of a release. make test: nothing
package release

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Variable is the environment variable that make integration-release and make test-e2e-release set, so
// that every test runs.
const Variable = "TEST_RELEASE"

// Playing reports whether slow tests run.
func Playing() bool { return os.Getenv(Variable) != "" }

// seedVariable is the environment variable with which a test repeats what it did in make test-release.
const seedVariable = "TEST_SEED"

// Seed returns the seed of random inputs, which it logs: always the same in make test, and another one each time
// in make test-release, unless TEST_SEED has one.
func Seed(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(1)
	if Playing() {
		seed = rand.Uint64() //nolint:gosec // no secret
	}
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%s=%d repeats this", seedVariable, seed)
	return seed
}

// Only is the first line of a slow test. make test-release runs the test. make test skips it, and
// the tests provenBy show the same behaviour there.
func Only(t *testing.T, provenBy ...string) {
	t.Helper()
	if !Playing() {
		t.Skipf("make test-release runs it; in make test, %s show its behaviour", strings.Join(provenBy, ", "))
	}
}
