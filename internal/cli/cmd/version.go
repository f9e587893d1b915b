// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/conversion-operator/conversion-operator/internal/process"
)

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

func thisBuild() build {
	version, revision := process.Version()
	return build{Version: version, Revision: revision, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Licence: "Apache-2.0", Source: "https://github.com/conversion-operator/conversion-operator"}
}

func versionText() string { return thisBuild().Version }

func newVersionCommand() *cobra.Command {
	var output output
	command := &cobra.Command{
		Use:   "version",
		Short: "Show the version of this program, and what it was built from",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := output.validate(); err != nil {
				return unable(err)
			}
			return unable(output.write(command.OutOrStdout(), thisBuild(), thisBuild().writeText))
		},
	}
	output.add(command, formText, formJSON)
	return command
}

func (b build) writeText(to io.Writer) error {
	_, err := fmt.Fprintf(to, "conversion-operator %s\nrevision  %s\ngo        %s\nplatform  %s\nlicence   %s\nsource    %s\n",
		b.Version, b.Revision, b.Go, b.Platform, b.Licence, b.Source)
	return err
}
