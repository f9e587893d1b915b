// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/cli/overview"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/terminal"
)

// statusOptions are the flags of the status command.
type statusOptions struct {
	config     *genericclioptions.ConfigFlags
	output     output
	namespace  string
	watch      bool
	untilReady bool
	timeout    time.Duration

	// program is the name by which the user called the program.
	program string
	now     func() time.Time
}

func newStatusCommand() *cobra.Command {
	options := statusOptions{now: time.Now}
	command := &cobra.Command{
		Use:   "status [POLICY...]",
		Short: "Show the progress and the problems of policies",
		Long: `Show the progress and the problems of policies: one policy with all details and the
next steps; several, or all, as a table.

With --watch, the command updates the picture as things change; if the output is not
a terminal, it prints a line for each change instead. --until-ready ends when all of
the policies are Ready, and fails when one is stalled, because a stalled policy needs
a change by a user.

Rights: get, list and watch of conversionpolicies, and list of pods in the
operator's namespace. Without the latter, the output has no pods.

Exit codes:
  0  the policies were shown; with --until-ready: they are Ready
  1  with --until-ready: one is stalled, paused or deleted, or --timeout is over
  2  the policies could not be shown: a flag is wrong, or the cluster cannot be read`,
		Example: `  conversion-operator status
  conversion-operator status crontabs.example.com
  conversion-operator status crontabs.example.com --watch
  conversion-operator status crontabs.example.com --until-ready --timeout=30m`,
	}
	options.addFlags(command)
	return forUsers(command, cobra.ArbitraryArgs, func(command *cobra.Command, list []string) error {
		if err := options.validate(); err != nil {
			return err
		}
		options.program = calledAs(command)
		return options.run(command, list)
	})
}

func (o *statusOptions) addFlags(command *cobra.Command) {
	o.config = clusterFlags(command)
	o.output.add(command, formTable, formWide, formJSON, formYAML)
	command.ValidArgsFunction = namesIn(o.config, policyKind)
	flags := command.Flags()
	flags.StringVar(&o.namespace, "operator-namespace", "conversion-system", "namespace of the operator and of the converter pods")
	flags.BoolVarP(&o.watch, "watch", "w", false, "follow changes")
	flags.BoolVar(&o.untilReady, "until-ready", false, "follow changes until all of the policies are Ready, or one of them is stalled")
	flags.DurationVar(&o.timeout, "timeout", 0, "with --watch or --until-ready: maximum time to follow; 0 means no limit")
	_ = command.RegisterFlagCompletionFunc("operator-namespace", namesIn(o.config, namespaceKind)) // the flag is there
}

func (o *statusOptions) validate() error {
	if err := o.output.validate(); err != nil {
		return err
	}
	follows := o.watch || o.untilReady
	switch {
	case o.timeout < 0:
		return fmt.Errorf("--timeout must not be negative, is %s", o.timeout)
	case o.timeout > 0 && !follows:
		return errors.New("--timeout limits how long to follow: add --watch or --until-ready")
	case o.watch && !o.untilReady && o.output.isMachineReadable():
		return fmt.Errorf("--output=%s is written once, at the end: add --until-ready, or leave out --watch", o.output.form)
	}
	return nil
}

func (o *statusOptions) run(command *cobra.Command, list []string) error {
	list = slices.Compact(slices.Sorted(slices.Values(list)))
	api, err := connect(o.config)
	if err != nil {
		return err
	}
	policies, err := findPolicies(command.Context(), api, list)
	if err != nil {
		return err
	}
	if len(policies) == 0 {
		fmt.Fprintln(command.ErrOrStderr(), "No ConversionPolicies found.")
		return o.write(command.OutOrStdout(), []*overview.Overview{}, false)
	}
	if o.watch || o.untilReady {
		return o.follow(command, api, list, policies)
	}
	return o.write(command.OutOrStdout(), o.overviews(command.Context(), api, policies), len(list) == 1)
}

// overviews returns the overview of each policy. It reads pods only if the output
// shows all details.
func (o *statusOptions) overviews(ctx context.Context, api client.Client, policies []*v1alpha1.ConversionPolicy) []*overview.Overview {
	all := make([]*overview.Overview, 0, len(policies))
	for _, policy := range policies {
		seen := overview.Observed{
			Policy: policy, Namespace: o.namespace, Instance: names.Child(policy.Name), PodsInstance: podsInstance(policy), Now: o.now(), Program: o.program,
		}
		if len(policies) == 1 || o.output.isMachineReadable() {
			seen.Pods, seen.PodsUnknown = o.pods(ctx, api, policy)
		}
		all = append(all, overview.Of(seen))
	}
	return all
}

// podsInstance is the instance label of the converter pods of a policy.
func podsInstance(policy *v1alpha1.ConversionPolicy) string {
	if fleet := observed.FleetOf(policy); fleet != "" {
		return names.Fleet(fleet)
	}
	return names.Child(policy.Name)
}

// pods returns the pods of a policy's converter, or why they cannot be read.
func (o *statusOptions) pods(ctx context.Context, api client.Client, policy *v1alpha1.ConversionPolicy) ([]corev1.Pod, string) {
	pods := &corev1.PodList{}
	labels := client.MatchingLabels{names.InstanceLabel: podsInstance(policy), names.ManagedByLabel: names.ManagedBy, names.ComponentLabel: names.ConverterComponent}
	if err := api.List(ctx, pods, client.InNamespace(o.namespace), labels); err != nil {
		return nil, err.Error()
	}
	return pods.Items, ""
}

func (o *statusOptions) write(w io.Writer, all []*overview.Overview, one bool) error {
	return o.output.write(w, overview.Report{Format: overview.Format, Policies: all}, func(w io.Writer) error { return o.writeText(w, all, one, colorsOf(w)) })
}

func (o *statusOptions) writeText(w io.Writer, all []*overview.Overview, one bool, colors terminal.Colors) error {
	page := overview.Page{Wide: o.output.form == formWide, Colors: colors}
	if one {
		return all[0].WritePage(w, page)
	}
	return overview.WriteTable(w, all, page)
}

// checkReady reports whether --until-ready is fulfilled, and returns an error for a state in which
// it never will be.
func (o *statusOptions) checkReady(all []*overview.Overview) (ready bool, err error) {
	if !o.untilReady {
		return false, nil
	}
	ready = true
	for _, one := range all {
		if one.Settled && one.Ready != metav1.ConditionTrue {
			return false, &exitError{exitFound, fmt.Errorf("%s does not become Ready by itself: %s: run %s status %s to see what to do", one.Name, one.Reason, o.program, one.Name)}
		}
		ready = ready && one.Settled
	}
	return ready, nil
}
