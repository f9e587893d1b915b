// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/cli/findings"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify"
)

// verifyOptions are the flags of the verify command.
type verifyOptions struct {
	definitions definitions
	files       []string
	output      output
	liveOptions
}

func newVerifyCommand() *cobra.Command {
	options := verifyOptions{}
	command := &cobra.Command{
		Use:   "verify [POLICY]",
		Short: "Test a policy's rules on objects, and report what is lost",
		Long: `Test a policy's rules on objects, and report what is lost.

The command converts each object from every version to every other one and back,
compares it with the original, and validates it against the schema of each version,
as an API server would. It also edits each object at the other versions, as clients do:
it sets each field to another value, inserts and removes elements of lists, and fills in
the defaults of the schema. What an edit discards, although it does not concern it, is a
warning. The report, on stdout, is Markdown. It shows values of objects.

Objects come from files and directories (-f), or from a cluster (--live), which the
command only reads. With --live, a policy or CustomResourceDefinition without a flag
comes from the cluster, too: pass files to test what is not applied yet. POLICY is
the name of the policy, if there is no file or a file has several. Without objects,
the command checks the rules, and tests them on objects made up from them.

Exit codes:
  0  nothing is lost except what a drop rule gives up; there may be warnings
  1  something is lost, or an object cannot be converted, or does not fit the schema
     of a version
  2  the test could not run: a flag is wrong, a file or the cluster cannot be
     read, or the policy is not valid`,
		Example: `  conversion-operator verify --policy policy.yaml --crd crd.yaml -f objects.yaml
  conversion-operator verify --policy policy.yaml --crd crd.yaml --live
  conversion-operator verify crontabs.example.com --live --namespace team-a -o json
  conversion-operator verify --policy policy.yaml --crd crd.yaml --live --context staging,production`,
	}
	flags := command.Flags()
	options.definitions.addFlags(flags)
	flags.StringArrayVarP(&options.files, "filename", "f", nil, "file or directory of objects, - for stdin; can be given several times")
	options.output.add(command, formText, formJSON, formYAML, formSARIF, formJUnit)
	options.liveOptions.addFlags(command, "try the rules on the objects in a cluster")
	acceptContexts(command)
	command.ValidArgsFunction = firstArgument(namesIn(options.config, policyKind))
	return forUsers(command, cobra.MaximumNArgs(1), options.run)
}

func (o *verifyOptions) validate() error {
	if err := o.output.validate(); err != nil {
		return err
	}
	return o.liveOptions.validate(o.files)
}

func (o *verifyOptions) run(command *cobra.Command, args []string) error {
	if err := o.validate(); err != nil {
		return err
	}
	name := strings.Join(args, "")
	reporting := reporting[verify.Report]{
		config: o.config, output: &o.output, stdout: command.OutOrStdout(), stderr: command.ErrOrStderr(),
		find:      func(ctx context.Context) (*verify.Report, error) { return o.find(ctx, command, name) },
		writeText: func(w, _ io.Writer, report *verify.Report) error { return report.WriteText(w) },
		findings: func(report *verify.Report) *findings.Report {
			return foundByVerify(report, placesIn([]string{o.definitions.policy}, policyManifest).policy(report.Policy))
		},
		judge: judgeVerify,
	}
	return reporting.run(command.Context())
}

func (o *verifyOptions) find(ctx context.Context, command *cobra.Command, name string) (*verify.Report, error) {
	from, objects, err := o.sources(command, o.files, false)
	if err != nil {
		return nil, err
	}
	policy, crd, err := o.definitions.read(ctx, name, from)
	if err != nil {
		return nil, err
	}
	return try(ctx, policy, crd, objects)
}

func judgeVerify(report *verify.Report) error {
	switch report.Outcome {
	case verify.Failed:
		return &exitError{exitFound, errors.New("problems found; see the report")}
	case verify.Invalid:
		return unable(errors.New("the policy is not valid; see the report"))
	}
	return nil
}

// try compiles the rules against the CustomResourceDefinition, and tests them on
// objects made up from them, and on those of the source.
func try(ctx context.Context, policy *v1alpha1.ConversionPolicy, crd *apiextensionsv1.CustomResourceDefinition, objects source) (*verify.Report, error) {
	checker, err := verify.New(policy, crd, time.Now)
	if err != nil {
		return nil, err
	}
	from := ""
	if checker.Valid() {
		checker.Canaries(ctx)
		if from, err = objects(ctx, checker, crd.Name); err != nil {
			return nil, err
		}
	}
	return checker.Report(from), nil
}

// source passes all objects of a CustomResourceDefinition to the checker, and returns where they come from.
type source func(ctx context.Context, checker *verify.Checker, crd string) (from string, err error)

// inFiles are the objects in files.
func inFiles(files []string, stdin io.Reader) source {
	return func(ctx context.Context, checker *verify.Checker, _ string) (string, error) {
		objects, err := readObjects(files, stdin)
		if err != nil {
			return "", err
		}
		for _, object := range objects {
			checker.Check(ctx, object)
		}
		return sourcesOf(files), nil
	}
}
