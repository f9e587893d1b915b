// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"runtime"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestVersionCommand(t *testing.T) {
	before, beforeCommit := version, commit
	t.Cleanup(func() { version, commit = before, beforeCommit })
	version, commit = "v1.2.3", "0123abcd"
	want := build{Version: "v1.2.3", Revision: "0123abcd", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Licence: "Apache-2.0", Source: "https://github.com/conversion-operator/conversion-operator"}

	stdout, _, err := run("version", "-o", "json")
	expect.NoError(t, err)
	got := build{}
	expect.NoError(t, json.Unmarshal([]byte(stdout), &got))
	expect.Equal(t, "version -o json", want, got)

	stdout, _, err = run("version")
	expect.NoError(t, err)
	expect.Contains(t, "the output", stdout, "conversion-operator v1.2.3\n", "revision  0123abcd\n", "licence   Apache-2.0\n")
}

// Without a release build, the version is what Go recorded, and no field is empty.
func TestVersionWithoutBuildInfo(t *testing.T) {
	before, beforeCommit := version, commit
	t.Cleanup(func() { version, commit = before, beforeCommit })
	version, commit = "", ""
	if got := thisBuild(); got.Version == "" || got.Revision == "" {
		t.Errorf("%+v", got)
	}
}
