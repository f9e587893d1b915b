// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/cli/findings"
	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify/live"
)

// verifyOptions are the flags of the verify command.
type verifyOptions struct {
	definitions definitions
	files       []string
	record      string
	golden      string
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

--record writes a golden file: each object, and what it becomes at other versions, with
the hashes of the rules and of the schemas. --golden repeats these conversions later. A
field with another value is an error, other rules or schemas are a warning. Review the
file like code, and record it again when you want the change. It has all values of the
objects: record no secrets.

Exit codes:
  0  nothing is lost except what a drop rule gives up; there may be warnings
  1  something is lost, or an object cannot be converted, or does not fit the schema
     of a version, or a conversion is not as recorded
  2  the test could not run: a flag is wrong, a file or the cluster cannot be
     read, or the policy is not valid`,
		Example: `  conversion-operator verify --policy policy.yaml --crd crd.yaml -f objects.yaml
  conversion-operator verify --policy policy.yaml --crd crd.yaml -f objects.yaml --record golden.yaml
  conversion-operator verify --policy policy.yaml --crd crd.yaml --golden golden.yaml
  conversion-operator verify --policy policy.yaml --crd crd.yaml --live
  conversion-operator verify crontabs.example.com --live --namespace team-a -o json
  conversion-operator verify --policy policy.yaml --crd crd.yaml --live --context staging,production`,
	}
	flags := command.Flags()
	options.definitions.addFlags(flags)
	flags.StringArrayVarP(&options.files, "filename", "f", nil, "file or directory of objects, - for stdin; can be given several times")
	flags.StringVar(&options.record, "record", "", "golden file to write: the conversions of the objects")
	flags.StringVar(&options.golden, "golden", "", "golden file with conversions to repeat: what differs is an error")
	options.output.add(command, formText, formJSON, formYAML, formSARIF, formJUnit)
	options.addFlags(command, "try the rules on the objects in a cluster")
	acceptContexts(command)
	command.ValidArgsFunction = firstArgument(namesIn(options.config, policyKind))
	return forUsers(command, cobra.MaximumNArgs(1), options.run)
}

func (o *verifyOptions) validate() error {
	if err := o.output.validate(); err != nil {
		return err
	}
	switch {
	case o.record != "" && o.golden != "":
		return errors.New("--record and --golden exclude each other: compare first, then record")
	case o.record != "" && len(o.files) == 0 && !o.live:
		return errors.New("--record needs objects: pass them with -f, or add --live")
	case o.record != "" && hasComma(o.config):
		return errors.New("--record writes one file: name one context")
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
	golden, err := readGolden(o.golden)
	if err != nil {
		return nil, err
	}
	return try(ctx, policy, crd, func(ctx context.Context, checker *verify.Checker, crd string) (string, error) {
		if golden != nil {
			if err := checker.Compare(golden); err != nil {
				return "", err
			}
		}
		if o.record == "" {
			return objects(ctx, checker, crd)
		}
		checker.Record()
		from, err := objects(ctx, checker, crd)
		if err != nil {
			return "", err
		}
		return from, writeGolden(checker, o.record, command.ErrOrStderr())
	})
}

// readGolden reads a golden file, nil if there is none.
func readGolden(file string) (*verify.Golden, error) {
	if file == "" {
		return nil, nil //nolint:nilnil // There is nothing to compare with then, and no error.
	}
	opened, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(opened, verify.MaxGolden+1))
	if err = errors.Join(err, opened.Close()); err != nil {
		return nil, err
	}
	if len(text) > verify.MaxGolden {
		return nil, fmt.Errorf("%s has more than %d bytes: verify --record writes no such file", file, verify.MaxGolden)
	}
	return verify.ReadGolden(file, text)
}

// writeGolden writes what the checker has recorded.
func writeGolden(checker *verify.Checker, file string, stderr io.Writer) error {
	text, objects, left, err := checker.Recorded()
	switch {
	case err != nil:
		return err
	case objects == 0:
		return fmt.Errorf("%s was not written: no object could be converted", file)
	case left > 0:
		checker.Warn(fmt.Sprintf("%d objects did not fit into %s, which has the first %d: it is limited to %d bytes", left, file, objects, verify.MaxGolden))
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // It goes to git, where others read it.
		return err
	}
	_, err = fmt.Fprintf(stderr, "objects recorded in %s: %d\n", file, objects)
	return err
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

// liveOptions are the flags that select objects of a cluster.
type liveOptions struct {
	live     bool
	config   *genericclioptions.ConfigFlags
	sample   int64
	selector string
	pageSize int64
}

func (o *liveOptions) addFlags(command *cobra.Command, usage string) {
	command.Flags().BoolVar(&o.live, "live", false, usage)
	o.config = namespacedFlags(command, "with --live: try only the objects of this namespace; default all namespaces")
	flags := command.Flags()
	flags.StringVarP(&o.selector, "selector", "l", "", "with --live: try only the objects with these labels")
	flags.Int64Var(&o.sample, "sample", 0, "with --live: try only this number of objects, the first by namespace and name")
	flags.Int64Var(&o.pageSize, "page-size", 500, "with --live: objects to read in one request")
}

// checkUnused returns an error for a flag that requires --live.
func (o *liveOptions) checkUnused() error {
	for flag, used := range map[string]bool{"namespace": *o.config.Namespace != "", "selector": o.selector != "", "sample": o.sample != 0, "context": hasComma(o.config)} {
		if used {
			return fmt.Errorf("--%s selects objects of a cluster: add --live", flag)
		}
	}
	return nil
}

// validate checks the flags of a command that tests objects in files, or in a cluster.
func (o *liveOptions) validate(files []string) error {
	switch {
	case !o.live:
		return o.checkUnused()
	case len(files) > 0:
		return errors.New("-f and --live exclude each other: objects come from files, or from a cluster")
	case o.sample < 0:
		return fmt.Errorf("--sample must not be negative, is %d", o.sample)
	case o.pageSize < 1:
		return fmt.Errorf("--page-size must be at least 1, is %d", o.pageSize)
	}
	if _, err := labels.Parse(o.selector); err != nil {
		return fmt.Errorf("--selector is not a label selector: %w", err)
	}
	return nil
}

// sources returns the cluster, nil if the command needs none, and the source of the objects.
func (o *liveOptions) sources(command *cobra.Command, files []string, needsCluster bool) (*live.Cluster, source, error) {
	if !o.live && !needsCluster {
		return nil, inFiles(files, stdinOf(command)), nil
	}
	from, err := connectToRead(o.config)
	if o.live {
		return from, o.inCluster(from, command.ErrOrStderr()), err
	}
	return from, inFiles(files, stdinOf(command)), err
}

// inCluster are the objects in a cluster that the flags select.
func (o *liveOptions) inCluster(from *live.Cluster, stderr io.Writer) source {
	shown := &progress{to: stderr, interactive: isTerminal(stderr), what: "objects"}
	return func(ctx context.Context, checker *verify.Checker, name string) (string, error) {
		// The definition of the cluster, even if a file has one: it says how objects are stored.
		crd, err := from.Definition(ctx, name)
		if err != nil {
			return "", err
		}
		version, asStored, err := live.VersionToRead(crd)
		if err != nil {
			return "", err
		}
		if err := o.checkFits(checker, crd, version); err != nil {
			return "", err
		}
		if !asStored || len(crd.Status.StoredVersions) > 1 {
			checker.Warn(fmt.Sprintf("some objects are stored in another version than %s, in which the command read them (stored: %s): they passed through the current conversion of the cluster, which is %s",
				version, strings.Join(crd.Status.StoredVersions, ", "), crds.Strategy(crd)))
		}
		query := live.Query{
			Resource: crds.Resource(crd, version), Namespace: *o.config.Namespace,
			Selector: o.selector, Sample: o.sample, PageSize: o.pageSize,
		}
		err = from.Objects(ctx, query, func(object manifest.Object) { checker.Check(ctx, object) }, shown.page)
		shown.end()
		return o.describe(version), err
	}
}

// checkFits returns an error if the policy or the flags do not fit the objects of the cluster.
func (o *liveOptions) checkFits(checker *verify.Checker, crd *apiextensionsv1.CustomResourceDefinition, version string) error {
	if !slices.Contains(checker.Versions(), version) {
		return fmt.Errorf("the cluster has objects of version %s, but the policy converts only %s: add the version to the CustomResourceDefinition of --crd",
			version, strings.Join(checker.Versions(), ", "))
	}
	if *o.config.Namespace != "" && crd.Spec.Scope == apiextensionsv1.ClusterScoped {
		return fmt.Errorf("%s has no namespaces: leave out --namespace", crd.Spec.Names.Kind)
	}
	return nil
}

// describe says which objects were read.
func (o *liveOptions) describe(version string) string {
	text := "the cluster, at version " + version
	if namespace := *o.config.Namespace; namespace != "" {
		text += ", in namespace " + namespace
	}
	if o.selector != "" {
		text += ", with labels " + o.selector
	}
	if o.sample > 0 {
		text += fmt.Sprintf(", the first %d at most", o.sample)
	}
	return text
}
