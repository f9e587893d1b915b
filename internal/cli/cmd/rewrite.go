// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/conversion-operator/conversion-operator/internal/cli/rewrite"
	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
)

// rewriteOptions are the flags of the rewrite command.
type rewriteOptions struct {
	config      *genericclioptions.ConfigFlags
	definitions definitions
	files       []string
	output      output
	options     rewrite.Options
	dryRun      bool
	check       bool
}

func newRewriteCommand() *cobra.Command {
	options := rewriteOptions{}
	command := &cobra.Command{
		Use:   "rewrite [POLICY] -f FILE... --to VERSION",
		Short: "Convert manifests in a repository to another version, and keep their comments",
		Long: `Convert manifests in files to another version, where they stand. Only fields that
change are different afterwards: comments, the order of fields, quotes, anchors,
indentation and line breaks stay. An API server gets from the new manifest what the
conversion webhook makes of the old one.

Files are YAML or JSON, with one or several documents and lists; directories are
read with all their .yaml, .yml and .json files, patterns such as 'apps/**/*.yaml'
in quotes are expanded, and - converts stdin to stdout. Files without objects of
the policy's kind are not changed. A file is replaced as a whole, or not at all.

Patches of kustomize are converted as parts of objects: strategic merge patches, and
the paths and values of JSON patches, in files and in a kustomization. Templates of
Helm charts are converted if the result is right for every value that they may write.

An object stays at its version if the new one cannot express one of its fields, and
the command names the field and its line. Remove it, or pass --keep-preserved: then
the value stays in an annotation of the manifest, from which the operator restores it.

The policy and the CustomResourceDefinition come from files, or from a cluster if
their flag is missing. POLICY is the name of the policy, if there is no file or a
file has several.

Exit codes:
  0  all objects of the kind are at the version
  1  some are not: they were left, or --check found some to rewrite
  2  nothing was rewritten: a flag is wrong, a file of the command line or the
     cluster cannot be read, or the policy is not valid`,
		Example: `  conversion-operator rewrite --policy policy.yaml --crd crd.yaml --to v1 -f manifests/ --dry-run
  conversion-operator rewrite crontabs.example.com --to v1 -f 'manifests/**/*.yaml'
  conversion-operator rewrite --policy policy.yaml --crd crd.yaml --to v1 -f manifests/ --check -o sarif > found.sarif`,
	}
	options.config = clusterFlags(command)
	flags := command.Flags()
	options.definitions.addFlags(flags)
	flags.StringArrayVarP(&options.files, "filename", "f", nil, "file, directory or pattern of manifests, - for stdin; can be given several times")
	flags.StringVar(&options.options.To, "to", "", "version to convert to, for example v1")
	flags.BoolVar(&options.options.KeepPreserved, "keep-preserved", false, "keep values that the version cannot express in an annotation of the manifest")
	flags.BoolVar(&options.dryRun, "dry-run", false, "change no file, and show the differences")
	flags.BoolVar(&options.check, "check", false, "change no file, and fail if one would change")
	options.output.add(command, formText, formJSON, formYAML, formSARIF, formJUnit)
	command.ValidArgsFunction = firstArgument(namesIn(options.config, policyKind))
	return forUsers(command, cobra.MaximumNArgs(1), options.run)
}

func (o *rewriteOptions) validate() error {
	if err := o.output.validate(); err != nil {
		return err
	}
	switch {
	case o.options.To == "":
		return errors.New("--to is required: the version to convert to, for example v1")
	case len(o.files) == 0:
		return errors.New("which manifests? Pass files or directories with -f")
	case o.dryRun && o.check:
		return errors.New("--dry-run and --check exclude each other: --dry-run shows the differences, --check only says whether there are any")
	case o.dryRun && o.output.form != formText:
		return errors.New("--dry-run writes the differences as text: use --check with -o " + o.output.form)
	case slices.Contains(o.files, manifest.Stdin) && len(o.files) > 1:
		return errors.New("-f - converts stdin to stdout, and excludes other files")
	}
	return nil
}

func (o *rewriteOptions) run(command *cobra.Command, args []string) error {
	if err := o.validate(); err != nil {
		return err
	}
	name := strings.Join(args, "")
	rewriter, policy, err := o.rewriter(command.Context(), name)
	if err != nil {
		return err
	}
	report := &rewrite.Report{Format: rewrite.Format, Policy: policy, To: o.options.To, Files: []rewrite.File{}, Written: !o.dryRun && !o.check}
	if o.files[0] == manifest.Stdin {
		return o.runStdin(command, rewriter, report)
	}
	files, err := manifestFiles(o.files)
	if err != nil {
		return err
	}
	patches, err := patchFiles(files, rewriter)
	if err != nil {
		return err
	}
	progress := progress{to: command.ErrOrStderr(), interactive: isTerminal(command.ErrOrStderr()), what: "files"}
	for i, file := range files {
		if err := command.Context().Err(); err != nil {
			return err
		}
		if i%100 == 0 {
			progress.page(int64(i), int64(len(files)-i))
		}
		report.Add(file, o.rewrite(file, rewriter, patches, command.OutOrStdout()))
	}
	progress.clear()
	return o.finish(command.OutOrStdout(), report)
}

// rewriter compiles the policy.
func (o *rewriteOptions) rewriter(ctx context.Context, name string) (*rewrite.Rewriter, string, error) {
	from, err := o.definitions.clusterFor(o.config)
	if err != nil {
		return nil, "", err
	}
	policy, crd, result, err := o.definitions.compile(ctx, name, from)
	if err != nil {
		return nil, "", err
	}
	rewriter, err := rewrite.New(policy, crd, result, o.options)
	if err != nil {
		return nil, "", fmt.Errorf("--to: %w", err)
	}
	return rewriter, policy.Name, nil
}

// rewrite rewrites a file, or shows what would change.
func (o *rewriteOptions) rewrite(file string, rewriter *rewrite.Rewriter, patches patches, stdout io.Writer) *rewrite.Result {
	before, err := os.ReadFile(file)
	if err != nil {
		return problem(err)
	}
	switch {
	case rewrite.IsUTF16(before):
		return problem(errUTF16)
	case bytes.IndexByte(before, 0) >= 0: // no text
		return &rewrite.Result{}
	}
	result := &rewrite.Result{}
	switch target := patches.of(file); {
	case rewrite.IsKustomization(file):
		result = rewriter.Kustomization(before, func(path string) bool { return patches.stays(filepath.Join(filepath.Dir(file), path), rewriter) })
	case target != nil:
		result = rewriter.Patch(before, target)
	case rewriter.Mentions(before):
		result = rewriter.Text(before)
	}
	switch {
	case !result.Changed() || o.check:
	case o.dryRun:
		if _, err := io.WriteString(stdout, udiff.Unified(file, file, string(before), string(result.Text))); err != nil {
			return problem(err)
		}
	default:
		if err := replaceFile(file, before, result.Text); err != nil {
			return problem(err)
		}
	}
	return result
}

var errUTF16 = errors.New("the file is in UTF-16: write it in UTF-8, and run the command again")

// problem is the result of a file that could not be read or written.
func problem(err error) *rewrite.Result {
	return &rewrite.Result{Problems: []rewrite.Problem{{Line: 1, Message: err.Error()}}}
}

// runStdin converts stdin to stdout, and reports to stderr.
func (o *rewriteOptions) runStdin(command *cobra.Command, rewriter *rewrite.Rewriter, report *rewrite.Report) error {
	before, err := io.ReadAll(stdinOf(command))
	if err != nil {
		return fmt.Errorf("read stdin: %w", err)
	}
	result := rewriter.Text(before)
	if rewrite.IsUTF16(before) {
		result = problem(errUTF16)
		result.Text = before
	}
	report.Add("stdin", result)
	stdout := command.OutOrStdout()
	switch {
	case o.check:
		return o.finish(stdout, report)
	case o.dryRun:
		_, err = io.WriteString(stdout, udiff.Unified("stdin", "stdin", string(before), string(result.Text)))
	default:
		_, err = stdout.Write(result.Text)
	}
	if err != nil {
		return err
	}
	return o.finish(command.ErrOrStderr(), report)
}

// finish writes the report, and returns an error if something is not at the version.
func (o *rewriteOptions) finish(w io.Writer, report *rewrite.Report) error {
	if err := o.output.writeOrFind(w, report, report.Found, report.WriteText); err != nil {
		return err
	}
	switch {
	case !report.Complete():
		return &exitError{exitFound, errors.New("some manifests are left; see the report")}
	case o.check && report.Count(rewrite.Rewritten) > 0:
		return &exitError{exitFound, errors.New("some manifests are at an old version; see the report")}
	}
	return nil
}
