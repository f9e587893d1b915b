// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version and commit are set by the release build:
// -ldflags "-X github.com/conversion-operator/conversion-operator/internal/cli/cmd.version=v1.2.3".
var version, commit string

// unknown is the version if neither the linker nor Go knows it.
const unknown = "(unknown)"

// build is the build information of the binary.
type build struct {
	// Version is that of the release, and Revision the commit of its source.
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Licence  string `json:"licence"`
	Source   string `json:"source"`
}

// thisBuild prefers the values of the linker to those of Go.
func thisBuild() build {
	found := build{Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Licence: "Apache-2.0", Source: "https://github.com/conversion-operator/conversion-operator"}
	settings := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		settings["version"] = info.Main.Version
		for _, setting := range info.Settings {
			settings[setting.Key] = setting.Value
		}
	}
	found.Version = cmp.Or(version, settings["version"], unknown)
	found.Revision = cmp.Or(commit, settings["vcs.revision"], unknown)
	return found
}

func versionText() string { return thisBuild().Version }

func newVersionCommand() *cobra.Command {
	var output string
	command := &cobra.Command{
		Use:   "version",
		Short: "Show the version of this program, and what it was built from",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return unable(thisBuild().write(command.OutOrStdout(), output))
		},
	}
	command.Flags().StringVarP(&output, "output", "o", "text", "output format: text or json")
	complete(command, "output", "text", "json")
	return command
}

func (b build) write(to io.Writer, form string) error {
	switch form {
	case "text":
		_, err := fmt.Fprintf(to, "conversion-operator %s\nrevision  %s\ngo        %s\nplatform  %s\nlicence   %s\nsource    %s\n",
			b.Version, b.Revision, b.Go, b.Platform, b.Licence, b.Source)
		return err
	case "json":
		return json.NewEncoder(to).Encode(b)
	}
	return fmt.Errorf("--output must be text or json, is %q", form)
}
