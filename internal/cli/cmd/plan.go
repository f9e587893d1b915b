// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/controllers"
	"github.com/conversion-operator/conversion-operator/internal/cli/plan"
	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify/live"
)

// planOptions are the flags of the plan command.
type planOptions struct {
	liveOptions
	output    output
	files     []string
	crd       string
	namespace string
	local     bool
	deletes   bool

	program string
}

func newPlanCommand() *cobra.Command {
	options := planOptions{}
	command := &cobra.Command{
		Use:   "plan [POLICY] [-f FILE...]",
		Short: "Forecast what the operator will do about a policy, until nothing happens by itself",
		Long: `Forecast what the operator will do about a policy, until nothing happens by itself.

The command makes the decisions of the operator one after the other, on a simulated
cluster, and prints the whole path: the gates, the writes and who writes them, what
can be undone and until when, the waits and why, what has to be true outside of the
operator, the objects that fail, and how long it takes.

-f has what you are about to apply: the policy, its CustomResourceDefinition, or both;
the latter may also come from --crd. Without -f, the forecast is about POLICY as it is in the
cluster; with --delete, about its deletion. The command only reads the cluster, and no
Secrets: it assumes that certificates are valid, that converter pods start and answer
as they should, and that clients change nothing meanwhile. It converts every object of
the kind, as verify --live does.

--local reads no cluster: nothing of the policy exists yet, and objects are those of -f.

Rights: get of conversionpolicies, of customresourcedefinitions, and of the
compositeresourcedefinition of a kind that Crossplane generates; list of the objects and
of converterfleets; and in the operator's namespace what the role "view" allows.

Exit codes:
  0  at the end, the policy is Ready, or deleted
  1  the path ends in a stop; the command prints the first thing to do
  2  the forecast could not be made: a flag is wrong, or a file or the cluster cannot
     be read`,
		Example: `  conversion-operator plan -f policy.yaml
  conversion-operator plan -f policy.yaml --crd new-crd.yaml -o json
  conversion-operator plan crontabs.example.com --delete
  conversion-operator plan --local -f policy.yaml -f crd.yaml -f objects.yaml`,
	}
	options.config = clusterFlags(command)
	options.config.Namespace, options.pageSize = new(""), 500 // objects of all namespaces
	options.output.add(command, formText, formJSON, formYAML)
	command.ValidArgsFunction = firstArgument(namesIn(options.config, policyKind))
	flags := command.Flags()
	flags.StringArrayVarP(&options.files, "filename", "f", nil, "file or directory of what you are about to apply, - for stdin; can be given several times")
	flags.StringVar(&options.crd, "crd", "", "file of the CustomResourceDefinition that you are about to apply")
	flags.StringVar(&options.namespace, "operator-namespace", "conversion-system", "namespace of the operator and of the converter pods")
	flags.BoolVar(&options.deletes, "delete", false, "forecast the deletion of POLICY")
	flags.BoolVar(&options.local, "local", false, "read only files, and no cluster")
	_ = command.RegisterFlagCompletionFunc("operator-namespace", namesIn(options.config, namespaceKind)) // the flag is there
	return forUsers(command, cobra.MaximumNArgs(1), func(command *cobra.Command, args []string) error {
		options.program = calledAs(command)
		return options.run(command, strings.Join(args, ""))
	})
}

func (o *planOptions) validatePlan(name string) error {
	switch {
	case o.local && len(o.files) == 0:
		return errors.New("--local reads only files: pass the policy with -f")
	case o.deletes && (o.local || len(o.files) > 0 || o.crd != ""):
		return errors.New("--delete is about a policy of the cluster: leave out -f, --crd and --local")
	case name == "" && len(o.files) == 0:
		return errors.New("which policy? Name it as the argument, for example crontabs.example.com, or pass a file with -f")
	}
	return o.output.validate()
}

func (o *planOptions) run(command *cobra.Command, name string) error {
	if err := o.validatePlan(name); err != nil {
		return err
	}
	ctx := command.Context()
	in, objects, err := o.read(ctx, name, stdinOf(command))
	if err != nil {
		return err
	}
	if o.local {
		err = o.tryFiles(ctx, &in, objects)
	} else {
		err = o.tryCluster(ctx, &in, command.ErrOrStderr())
	}
	if err != nil {
		return err
	}
	report, err := plan.Of(in)
	if err != nil {
		return err
	}
	stdout := command.OutOrStdout()
	if err := o.output.write(stdout, report, func(w io.Writer) error { return report.WriteText(w, colorsOf(stdout)) }); err != nil {
		return err
	}
	if report.Stops() {
		return &exitError{exitFound, fmt.Errorf("%s does not become Ready: %s", report.Policy, report.End.Reason)}
	}
	return nil
}

// read reads what changes from files, and the objects in them. The policy that is observed has only its name.
func (o *planOptions) read(ctx context.Context, name string, stdin io.Reader) (in plan.Input, objects []manifest.Object, err error) {
	in = plan.Input{Program: o.program, Deletes: o.deletes, FromFiles: o.local}
	in.State = observed.Cluster{Now: time.Now(), Settings: observed.Settings{ // of a manager with its default flags
		Namespace: o.namespace, PropagationDelay: observed.DefaultPropagationDelay, ProofLifetime: observed.DefaultProofLifetime,
		SizeAdmission: true, DependentsAccount: names.DependentsAccount}}
	files := slices.DeleteFunc(append(slices.Clone(o.files), o.crd), func(file string) bool { return file == "" })
	if len(files) > 0 {
		found, err := readRevision(ctx, files, stdin)
		if err != nil {
			return in, nil, err
		}
		if name, err = o.choose(found, name, sourcesOf(files)); err != nil {
			return in, nil, err
		}
		in.Policy, in.CRD, objects = found.policies[name], found.crds[name], found.others
	}
	in.State.Policy = &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return in, objects, nil
}

// choose returns the name of the policy of which the files have what is needed.
func (o *planOptions) choose(found revision, name, files string) (string, error) {
	all := found.names()
	switch {
	case name == "" && len(all) > 1:
		return "", fmt.Errorf("which policy of %s? Name one as the argument: %s", files, strings.Join(all, ", "))
	case name == "":
		name = all[0]
	case !slices.Contains(all, name):
		return "", fmt.Errorf("%s has neither a ConversionPolicy nor a CustomResourceDefinition %s, only: %s", files, name, strings.Join(all, ", "))
	}
	if o.local && (found.policies[name] == nil || found.crds[name] == nil) {
		return "", fmt.Errorf("--local reads no cluster: pass the ConversionPolicy and the CustomResourceDefinition %s with -f", name)
	}
	return name, nil
}

// tryFiles tests the rules on the objects in files.
func (o *planOptions) tryFiles(ctx context.Context, in *plan.Input, objects []manifest.Object) error {
	for _, object := range objects {
		if isOfGroup(object, in.CRD.Spec.Group, in.CRD.Spec.Names.Kind) {
			in.Total++
		}
	}
	checker, err := checkerOf(in)
	if checker == nil || in.Total == 0 || err != nil {
		return err
	}
	for _, object := range objects {
		checker.Check(ctx, object)
	}
	in.Objects = checker.Report("")
	return nil
}

// checkerOf returns a checker of the rules; nil if there are none, or if they are not valid.
func checkerOf(in *plan.Input) (*verify.Checker, error) {
	policy, crd := cmp.Or(in.Policy, in.State.Policy), cmp.Or(in.CRD, in.State.CRD)
	if policy.Spec.Converter.Declarative == nil || crd == nil || in.Deletes {
		return nil, nil //nolint:nilnil // Nothing is to be checked then, and there is no error.
	}
	checker, err := verify.New(policy, crd, time.Now)
	if err != nil || !checker.Valid() {
		return nil, err
	}
	return checker, nil
}

// tryCluster reads the state of the cluster, and tests the rules on its objects.
func (o *planOptions) tryCluster(ctx context.Context, in *plan.Input, stderr io.Writer) error {
	from, err := connectToRead(o.config)
	if err != nil {
		return err
	}
	if err := o.observe(ctx, in); err != nil || in.State.CRD == nil {
		return err
	}
	version, _, err := live.VersionToRead(in.State.CRD)
	if err != nil {
		return err
	}
	checker, err := checkerOf(in)
	if err != nil {
		return err
	}
	if checker != nil && slices.Contains(checker.Versions(), version) {
		_, err := o.inCluster(from, stderr)(ctx, checker, in.State.Policy.Name)
		in.Objects = checker.Report("")
		in.Total = int64(in.Objects.Objects)
		return err
	}
	err = from.Heads(ctx, crds.Resource(in.State.CRD, version), func(live.Head) bool {
		in.Total++
		return true
	})
	if err != nil {
		return fmt.Errorf("count the objects: %w", err)
	}
	return nil
}

// observe reads the state of the cluster for a policy, which may not exist yet.
func (o *planOptions) observe(ctx context.Context, in *plan.Input) error {
	api, err := connect(o.config)
	if err != nil {
		return err
	}
	current := in.State.Policy
	err = api.Get(ctx, client.ObjectKeyFromObject(current), current)
	switch {
	case apierrors.IsNotFound(err) && in.Policy == nil:
		return noPolicy(current.Name)
	case err != nil && !apierrors.IsNotFound(err):
		return policyReadError(err)
	}
	wanted := current.DeepCopy()
	if in.Policy != nil {
		wanted.Spec = in.Policy.Spec
	}
	in.State, err = controllers.ObserveOnce(ctx, api, in.State.Settings, wanted)
	in.State.Policy = current
	return err
}
