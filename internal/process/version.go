// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"cmp"
	"runtime/debug"
)

// version and revision are set by the release build:
// -ldflags "-X github.com/conversion-operator/conversion-operator/internal/process.version=v1.2.3".
var version, revision string

// unknown is the version if neither the linker nor Go knows it.
const unknown = "(unknown)"

// Version returns the version of the release, and the commit of its source. It prefers the values of the
// linker to those of Go.
func Version() (release, commit string) {
	settings := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		settings["version"] = info.Main.Version
		for _, setting := range info.Settings {
			settings[setting.Key] = setting.Value
		}
	}
	return cmp.Or(version, settings["version"], unknown), cmp.Or(revision, settings["vcs.revision"], unknown)
}
