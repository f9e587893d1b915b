// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"runtime"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/process"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestVersionCommand(t *testing.T) {
	version, revision := process.Version()
	want := build{Version: version, Revision: revision, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Licence: "Apache-2.0", Source: "https://github.com/conversion-operator/conversion-operator"}

	stdout, _, err := run("version", "-o", "json")
	expect.NoError(t, err)
	got := build{}
	expect.NoError(t, json.Unmarshal([]byte(stdout), &got))
	expect.Equal(t, "version -o json", want, got)

	stdout, _, err = run("version")
	expect.NoError(t, err)
	expect.Contains(t, "the output", stdout, "conversion-operator "+version+"\n", "revision  "+revision+"\n", "licence   Apache-2.0\n")
}
