// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/conversion-operator/conversion-operator/internal/cli/report"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify"
)

// reportOptions are the flags of the report command.
type reportOptions struct {
	definitions definitions
	files       []string
	liveOptions
	hideValues bool
	timeless   bool
}

func newReportCommand() *cobra.Command {
	options := reportOptions{}
	command := &cobra.Command{
		Use:   "report [POLICY]",
		Short: "Show a policy as one HTML file, to read, review and keep",
		Long: `Show a policy as one HTML file, to read, review and keep.

The file, on stdout, shows the versions, how their fields correspond, the rules,
the results for objects, and the history of the operator. It needs no network and
no script. The same input makes the same file, except for one line with the time of
creation.

The policy and the CustomResourceDefinition come from files, or from a cluster if
their flag is missing. For a policy of a cluster, the report includes its conditions,
migration and history. The command tests objects like verify: those in files (-f), or
those of a cluster (--live). It only reads the cluster. POLICY is the name of the
policy, if there is no file or a file has several.

If an object loses something, the report shows the value, unless --hide-values
is set.

Exit codes:
  0  the report is written, and nothing is lost except what a drop rule gives up
  1  the report is written, and has problems: rules are not valid, or objects lose
     something, cannot be converted, or cannot be written
  2  no report: a flag is wrong, or a file or the cluster cannot be read`,
		Example: `  conversion-operator report --policy policy.yaml --crd crd.yaml -f objects.yaml > report.html
  conversion-operator report crontabs.example.com > report.html
  conversion-operator report crontabs.example.com --live --hide-values > report.html`,
	}
	flags := command.Flags()
	options.definitions.addFlags(flags)
	flags.StringArrayVarP(&options.files, "filename", "f", nil, "file or directory of objects, - for stdin; can be given several times")
	flags.BoolVar(&options.hideValues, "hide-values", false, "leave out values of objects, and messages that may contain values")
	flags.BoolVar(&options.timeless, "timeless", false, "leave out the time of creation: the same input makes the same file, byte for byte")
	options.addFlags(command, "try the rules on the objects in a cluster")
	command.ValidArgsFunction = firstArgument(namesIn(options.config, policyKind))
	return forUsers(command, cobra.MaximumNArgs(1), options.run)
}

func (o *reportOptions) validate(stdout io.Writer) error {
	if isTerminal(stdout) {
		return errors.New("the report is HTML and cannot be shown in a terminal: send it to a file, for example with > report.html")
	}
	return o.liveOptions.validate(o.files)
}

func (o *reportOptions) run(command *cobra.Command, args []string) error {
	if err := o.validate(command.OutOrStdout()); err != nil {
		return err
	}
	name := strings.Join(args, "")
	ctx := command.Context()
	from, objects, err := o.sources(command, o.files, o.definitions.policy == "" || o.definitions.crd == "")
	if err != nil {
		return err
	}
	policy, crd, err := o.definitions.read(ctx, name, from)
	if err != nil {
		return err
	}
	tried, err := try(ctx, policy, crd, objects)
	if err != nil {
		return err
	}
	in := report.Input{Policy: policy, CRD: crd, Tried: tried, From: o.from(), Tool: versionText(), HideValues: o.hideValues}
	if !o.timeless {
		in.Made = time.Now()
	}
	if err := report.Write(command.OutOrStdout(), in); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if policy.Spec.Converter.Declarative != nil && tried.Outcome != verify.Passed {
		return &exitError{exitFound, errors.New("problems found; see the report")}
	}
	return nil
}

// from describes where the policy and the CustomResourceDefinition come from.
func (o *reportOptions) from() string {
	var places []string
	for _, file := range []string{o.definitions.policy, o.definitions.crd} {
		if file == "" {
			file = "the cluster"
		}
		if !slices.Contains(places, file) {
			places = append(places, file)
		}
	}
	return strings.Join(places, " and ")
}
