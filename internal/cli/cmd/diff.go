// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/cli/diff"
	"github.com/conversion-operator/conversion-operator/internal/cli/findings"
	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify"
)

// diffOptions are the flags of the diff command.
type diffOptions struct {
	config *genericclioptions.ConfigFlags
	output output
	files  []string
	before []string
}

func newDiffCommand() *cobra.Command {
	options := diffOptions{}
	command := &cobra.Command{
		Use:   "diff -f FILE... [--before FILE...]",
		Short: "Show what a change of policies or CustomResourceDefinitions does to conversions",
		Long: `Show what a change of policies, or of CustomResourceDefinitions, does to
conversions: fields that get another verdict or another rule, fields that become
lost or hidden, and rules that no longer fit.

-f has the state after the change: policies, CustomResourceDefinitions, or both.
The command compares it with the cluster, which it only reads, or with files
(--before). A definition that only one side has is the same on the other side.

The command also lists fields for which objects may preserve values in annotations
and which get a place through the change. Such a value becomes data when a client
or a migration rewrites its object. -f may also have objects, in the format of
kubectl get: then the command counts them. verify --live does so for a cluster.

If schemas change, the command says which rules of a policy are still valid, and
drafts the missing ones from the schemas: for a new version, and for fields that
lose their counterpart. It keeps valid rules, and never drafts a drop rule. The
drafts do not change the exit code.

A change makes something worse if a field is newly dropped, preserved or pruned,
if rules no longer fit, or if clients no longer find a subresource, a selectable
field or a name of the kind. Clients that name no version use the preferred one:
an autoscaler fails if that has no scale, whatever the other versions have. A new
policy and a missing column are only listed.

Exit codes:
  0  nothing gets worse
  1  something gets worse
  2  the comparison could not run: a flag is wrong, or a file or the cluster
     cannot be read`,
		Example: `  conversion-operator diff -f new-crd.yaml
  conversion-operator diff --before old/ -f new/ -o wide
  git show main:policy.yaml | conversion-operator diff --before - -f policy.yaml -f crd.yaml`,
	}
	options.config = clusterFlags(command)
	acceptContexts(command)
	options.output.add(command, formTable, formWide, formJSON, formYAML, formSARIF, formJUnit)
	flags := command.Flags()
	flags.StringArrayVarP(&options.files, "filename", "f", nil, "file or directory of policies and CustomResourceDefinitions after the change, - for stdin; can be given several times")
	flags.StringArrayVar(&options.before, "before", nil, "file or directory of policies and CustomResourceDefinitions before the change, - for stdin; can be given several times; default those of the cluster")
	return forUsers(command, cobra.NoArgs, options.run)
}

func (o *diffOptions) validate() error {
	if err := o.output.validate(); err != nil {
		return err
	}
	if len(o.files) == 0 {
		return errors.New("what changes? Pass policies or CustomResourceDefinitions with -f")
	}
	if slices.Contains(o.files, manifest.Stdin) && slices.Contains(o.before, manifest.Stdin) {
		return errors.New("only one of -f and --before can read stdin")
	}
	if len(o.before) > 0 && hasComma(o.config) {
		return errors.New("--before compares with files: leave out --context")
	}
	return nil
}

func (o *diffOptions) run(command *cobra.Command, _ []string) error {
	if err := o.validate(); err != nil {
		return err
	}
	stdin, stdout := stdinOf(command), command.OutOrStdout()
	after, err := readRevision(command.Context(), o.files, stdin)
	if err != nil {
		return err
	}
	reporting := reporting[diff.Report]{
		config: o.config, output: &o.output, stdout: stdout, stderr: command.ErrOrStderr(),
		find: func(ctx context.Context) (*diff.Report, error) {
			before, err := o.readBefore(ctx, after, stdin)
			if err != nil {
				return nil, err
			}
			return compare(before, after, len(o.before) > 0, command.ErrOrStderr())
		},
		writeText: func(w, _ io.Writer, report *diff.Report) error {
			return report.WriteTables(w, diff.Table{Wide: o.output.form == formWide, Colors: colorsOf(stdout)})
		},
		findings: func(report *diff.Report) *findings.Report { return foundByDiff(report, o.files) },
		judge: func(report *diff.Report) error {
			if report.Worse() {
				return &exitError{exitFound, errors.New("something gets worse; see the report")}
			}
			return nil
		},
	}
	return reporting.run(command.Context())
}

// revision has policies and CustomResourceDefinitions, by name, and objects.
type revision struct {
	policies map[string]*v1alpha1.ConversionPolicy
	crds     map[string]*apiextensionsv1.CustomResourceDefinition
	// others are of any other kind.
	others []manifest.Object
}

func newRevision() revision {
	return revision{policies: map[string]*v1alpha1.ConversionPolicy{}, crds: map[string]*apiextensionsv1.CustomResourceDefinition{}}
}

func (r revision) names() []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(r.policies)), maps.Keys(r.crds))
	slices.Sort(names)
	return slices.Compact(names)
}

// readRevision reads the definitions and objects in files.
func readRevision(ctx context.Context, files []string, stdin io.Reader) (revision, error) {
	found := newRevision()
	objects, err := readObjects(files, stdin)
	if err != nil {
		return found, err
	}
	for _, object := range objects {
		if err := found.add(ctx, object); err != nil {
			return found, err
		}
	}
	if len(found.names()) == 0 {
		return found, fmt.Errorf("%s: neither a ConversionPolicy nor a CustomResourceDefinition found", sourcesOf(files))
	}
	return found, nil
}

func (r *revision) add(ctx context.Context, object manifest.Object) (err error) {
	switch {
	case isOfGroup(object, v1alpha1.GroupVersion.Group, policyManifest):
		r.policies[object.Name], err = policyOf(ctx, object)
	case isOfGroup(object, apiextensionsv1.GroupName, definitionManifest):
		r.crds[object.Name], err = verify.ReadDefinition(object)
	default:
		r.others = append(r.others, object)
	}
	return err
}

// readBefore reads the state before the change: from files, or from the cluster
// for the definitions that change.
func (o *diffOptions) readBefore(ctx context.Context, after revision, stdin io.Reader) (revision, error) {
	if len(o.before) > 0 {
		return readRevision(ctx, o.before, stdin)
	}
	before := newRevision()
	api, err := connect(o.config)
	if err != nil {
		return before, err
	}
	for _, name := range after.names() {
		policy, crd := &v1alpha1.ConversionPolicy{}, &apiextensionsv1.CustomResourceDefinition{}
		for _, object := range []client.Object{policy, crd} {
			err := api.Get(ctx, client.ObjectKey{Name: name}, object)
			if err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
				return before, fmt.Errorf("read %s of the cluster: %w", name, err)
			}
		}
		if policy.Name != "" {
			before.policies[name] = policy
		}
		if crd.Name != "" {
			before.crds[name] = crd
		}
	}
	return before, nil
}

// compare compares both sides, for each name that has a policy. Files may leave
// out unchanged definitions; a cluster has all of them.
func compare(before, after revision, fromFiles bool, stderr io.Writer) (*diff.Report, error) {
	report := &diff.Report{Format: diff.Format, Policies: []diff.Policy{}}
	for _, name := range after.names() {
		old := diff.Side{Policy: before.policies[name], CRD: cmp.Or(before.crds[name], after.crds[name])}
		next := diff.Side{Policy: cmp.Or(after.policies[name], old.Policy), CRD: cmp.Or(after.crds[name], old.CRD), Objects: after.others}
		if fromFiles {
			old.Policy = cmp.Or(old.Policy, next.Policy)
		}
		if next.Policy == nil {
			fmt.Fprintf(stderr, "%s: no ConversionPolicy found\n", name)
			continue
		}
		if next.CRD == nil {
			return nil, fmt.Errorf("%s: no CustomResourceDefinition found: pass it with -f", name)
		}
		policy, err := diff.Compare(old, next)
		if err != nil {
			return nil, err
		}
		report.Policies = append(report.Policies, policy)
	}
	if len(report.Policies) == 0 {
		return nil, errors.New("there is nothing to compare: pass a ConversionPolicy with -f")
	}
	return report, nil
}
