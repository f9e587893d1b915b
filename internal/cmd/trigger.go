// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/terminal"
)

// maxTrigger is MaxLength of spec.migration.trigger.
const maxTrigger = 253

func newTriggerCommand() *cobra.Command {
	options, text := operateOptions{}, ""
	command := &cobra.Command{
		Use:   "trigger POLICY...",
		Short: "Start a migration of stored objects",
		Long: `Start a migration of stored objects, by a change of spec.migration.trigger.

After a run in which objects failed, those alone are written again, unless the
CustomResourceDefinition has changed since. While a run goes on, the next one
begins after its end. A policy whose migrations are paused, or whose mode is
Never, starts none.

Whoever manages policies in Git changes the field there instead: a field that
somebody applies server-side is left alone without --force-conflicts.

Rights: get and patch of conversionpolicies.

Exit codes:
  0  the migration was asked for
  2  it could not be`,
		Example: `  conversion-operator trigger crontabs.example.com
  conversion-operator trigger crontabs.example.com --text="after the audit"`,
	}
	options.addFlags(command)
	command.Flags().StringVar(&text, "text", "", "what spec.migration.trigger is to be; default the time")
	return forPeople(command, cobra.MinimumNArgs(1), func(command *cobra.Command, names []string) error {
		if len(text) > maxTrigger {
			return fmt.Errorf("--text must be of %d characters at most, has %d", maxTrigger, len(text))
		}
		if text == "" {
			text = time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
		}
		return options.run(command, names, func(policy *v1alpha1.ConversionPolicy) (*edit, error) {
			return decideTrigger(policy, text, calledAs(command))
		})
	})
}

// decideTrigger asks for a run, and says when it is going to be.
func decideTrigger(policy *v1alpha1.ConversionPolicy, text, program string) (*edit, error) {
	migration := policy.Spec.Migration
	if err := leaving(policy); err != nil {
		return nil, err
	}
	switch {
	case migration.Mode == v1alpha1.MigrationNever:
		return nil, fmt.Errorf("spec.migration.mode is Never: set it to Automatic or OnTrigger, and a migration may begin")
	case migration.Trigger == text:
		return nil, fmt.Errorf("spec.migration.trigger is %q already, which starts nothing: choose another text", text)
	}
	made := &edit{Policy: policy.Name, Field: "spec.migration.trigger", Value: text, Changed: true}
	made.Says = append(whenTriggered(policy, program), "follow it: "+program+" status "+policy.Name+" --watch")
	return made, nil
}

// whenTriggered says what a run waits for, and what it is going to write.
func whenTriggered(policy *v1alpha1.ConversionPolicy, program string) []string {
	last := policy.Status.Migration
	var says []string
	switch {
	case policy.Spec.Suspend:
		says = append(says, "the operator is suspended: the migration begins after "+program+" resume "+policy.Name+" --everything")
	case policy.Spec.Migration.Paused:
		says = append(says, "migrations are paused: it begins after "+program+" resume "+policy.Name)
	case last != nil && last.State == v1alpha1.MigrationRunning:
		return append(says, "run "+last.Run+" goes on: another one begins after its end")
	case closedGate(policy) != "":
		says = append(says, "it begins once "+closedGate(policy)+" is True")
	default:
		says = append(says, "a migration begins")
	}
	if last != nil && last.State == v1alpha1.MigrationFailed && last.Failed > 0 {
		says = append(says, fmt.Sprintf("it writes what failed in run %s alone (%s), unless the CustomResourceDefinition has changed since",
			last.Run, terminal.Count(int(last.Failed), "object")))
	}
	return says
}

// closedGate is the first gate before the migration that is not passed.
func closedGate(policy *v1alpha1.ConversionPolicy) string {
	for _, gate := range v1alpha1.Gates {
		if gate == v1alpha1.StorageMigratedCondition {
			break
		}
		if apimeta.IsStatusConditionFalse(policy.Status.Conditions, gate) {
			return gate
		}
	}
	return ""
}

func newPauseCommand() *cobra.Command {
	return newSwitchCommand(&cobra.Command{
		Use:   "pause POLICY...",
		Short: "Stop a migration until it is resumed",
		Long: `Stop a migration until it is resumed: spec.migration.paused. Its pod ends, its
record stays, and no other run begins. With --everything the operator changes
nothing at all for the policy: spec.suspend. Converter pods go on answering.

Rights: get and patch of conversionpolicies.

Exit codes:
  0  it is paused
  2  it could not be`,
		Example: `  conversion-operator pause crontabs.example.com
  conversion-operator pause crontabs.example.com --everything`,
	}, true)
}

func newResumeCommand() *cobra.Command {
	return newSwitchCommand(&cobra.Command{
		Use:   "resume POLICY...",
		Short: "Let a migration go on that was paused",
		Long: `Let a migration go on that was paused, from where it was: spec.migration.paused.
With --everything the operator goes on with the policy: spec.suspend.

Rights: get and patch of conversionpolicies.

Exit codes:
  0  it is resumed
  2  it could not be`,
		Example: `  conversion-operator resume crontabs.example.com
  conversion-operator resume crontabs.example.com --everything`,
	}, false)
}

// newSwitchCommand sets what stops a policy, or takes it back.
func newSwitchCommand(command *cobra.Command, on bool) *cobra.Command {
	options, everything := operateOptions{}, false
	options.addFlags(command)
	command.Flags().BoolVar(&everything, "everything", false, "all that the operator does for the policy, and not its migration alone")
	return forPeople(command, cobra.MinimumNArgs(1), func(command *cobra.Command, names []string) error {
		return options.run(command, names, func(policy *v1alpha1.ConversionPolicy) (*edit, error) {
			if everything {
				return decideSuspend(policy, on, calledAs(command)), nil
			}
			return decidePause(policy, on, calledAs(command))
		})
	})
}

func decidePause(policy *v1alpha1.ConversionPolicy, on bool, program string) (*edit, error) {
	if err := leaving(policy); err != nil {
		return nil, err
	}
	made := &edit{Policy: policy.Name, Field: "spec.migration.paused", Value: on, Changed: policy.Spec.Migration.Paused != on}
	last := policy.Status.Migration
	runs := last != nil && last.State == v1alpha1.MigrationRunning
	switch {
	case on && runs:
		made.Says = append(made.Says, strings.TrimSpace("run "+last.Run+" stops at "+last.Progress)+": resume it by "+program+" resume "+policy.Name)
	case on:
		made.Says = append(made.Says, "no migration begins before "+program+" resume "+policy.Name)
	case policy.Spec.Suspend:
		made.Says = append(made.Says, "the operator is still suspended: "+program+" resume "+policy.Name+" --everything")
	case runs:
		made.Says = append(made.Says, "run "+last.Run+" goes on from where it was", "follow it: "+program+" status "+policy.Name+" --watch")
	}
	return made, nil
}

func decideSuspend(policy *v1alpha1.ConversionPolicy, on bool, program string) *edit {
	made := &edit{Policy: policy.Name, Field: "spec.suspend", Value: on, Changed: policy.Spec.Suspend != on}
	switch {
	case on:
		made.Says = append(made.Says, "the operator changes nothing, converter pods go on answering; let it go on by "+program+" resume "+policy.Name+" --everything")
	case policy.Spec.Migration.Paused:
		made.Says = append(made.Says, "migrations are still paused: "+program+" resume "+policy.Name)
	default:
		made.Says = append(made.Says, "follow it: "+program+" status "+policy.Name+" --watch")
	}
	return made
}
