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
	"github.com/conversion-operator/conversion-operator/internal/operator/terminal"
)

// maxTrigger is MaxLength of spec.migration.trigger.
const maxTrigger = 253

func newTriggerCommand() *cobra.Command {
	options, text := operateOptions{}, ""
	command := &cobra.Command{
		Use:   "trigger POLICY...",
		Short: "Start a migration of stored objects",
		Long: `Start a migration of stored objects, by a change of spec.migration.trigger.

After a run in which objects failed, the next run writes only those, unless the
CustomResourceDefinition has changed since. While a run is active, the next one
waits for its end. A policy whose migrations are suspended, or whose mode is Never,
starts none.

If you manage policies in Git, change the field there instead: without
--force-conflicts, the command does not change a field that another field manager
applies server-side.

Rights: get and patch of conversionpolicies.

Exit codes:
  0  the migration is requested
  2  the request failed`,
		Example: `  conversion-operator trigger crontabs.example.com
  conversion-operator trigger crontabs.example.com --text="after the audit"`,
	}
	options.addFlags(command)
	command.Flags().StringVar(&text, "text", "", "new value of spec.migration.trigger; default the time")
	return forUsers(command, cobra.MinimumNArgs(1), func(command *cobra.Command, names []string) error {
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

// decideTrigger requests a run, and says when it starts.
func decideTrigger(policy *v1alpha1.ConversionPolicy, text, program string) (*edit, error) {
	migration := policy.Spec.Migration
	if err := checkNotDeleted(policy); err != nil {
		return nil, err
	}
	switch {
	case migration.Mode == v1alpha1.MigrationNever:
		return nil, fmt.Errorf("spec.migration.mode is Never: set it to Automatic or OnTrigger to allow migrations")
	case migration.Trigger == text:
		return nil, fmt.Errorf("spec.migration.trigger is already %q, so nothing starts: choose another text", text)
	}
	change := &edit{Policy: policy.Name, Field: "spec.migration.trigger", Value: text, Changed: true}
	change.Says = append(whenTriggered(policy, program), "follow it: "+program+" status "+policy.Name+" --watch")
	return change, nil
}

// whenTriggered says what a run waits for, and what it writes.
func whenTriggered(policy *v1alpha1.ConversionPolicy, program string) []string {
	last := policy.Status.Migration
	var says []string
	switch {
	case policy.Spec.Paused:
		says = append(says, "the operator is paused: the migration starts after "+program+" resume "+policy.Name)
	case policy.Spec.Migration.Suspend:
		says = append(says, "migrations are suspended: it starts after "+program+" resume "+policy.Name+" --migration")
	case last != nil && last.State == v1alpha1.MigrationRunning:
		return append(says, "run "+last.Run+" is running: the next one starts after it")
	case closedGate(policy) != "":
		says = append(says, "it starts when "+closedGate(policy)+" is True")
	default:
		says = append(says, "a migration starts")
	}
	if last != nil && last.State == v1alpha1.MigrationFailed && last.Failed > 0 {
		says = append(says, fmt.Sprintf("it writes only the failed objects of run %s (%s), unless the CustomResourceDefinition has changed since",
			last.Run, terminal.Count(int(last.Failed), "object")))
	}
	return says
}

// closedGate returns the first condition before the migration that is not True.
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
		Short: "Pause a policy, or only its migrations",
		Long: `Pause a policy, with spec.paused: changes of it wait. Converter pods continue to
answer, and their certificates are renewed. With --migration, only migrations are suspended, with
spec.migration.suspend: the pod of a run ends, its record stays, and no other run
starts.

Rights: get and patch of conversionpolicies.

Exit codes:
  0  the policy is paused
  2  the change failed`,
		Example: `  conversion-operator pause crontabs.example.com
  conversion-operator pause crontabs.example.com --migration`,
	}, true)
}

func newResumeCommand() *cobra.Command {
	return newSwitchCommand(&cobra.Command{
		Use:   "resume POLICY...",
		Short: "Resume a paused policy, or its migrations",
		Long: `Resume a paused policy, with spec.paused. With --migration, migrations are
resumed, with spec.migration.suspend: a run continues from its checkpoint.

Rights: get and patch of conversionpolicies.

Exit codes:
  0  the policy is resumed
  2  the change failed`,
		Example: `  conversion-operator resume crontabs.example.com
  conversion-operator resume crontabs.example.com --migration`,
	}, false)
}

// newSwitchCommand sets or clears a field that pauses a policy.
func newSwitchCommand(command *cobra.Command, on bool) *cobra.Command {
	options, migration := operateOptions{}, false
	options.addFlags(command)
	command.Flags().BoolVar(&migration, "migration", false, "only migrations, not all that the operator does for the policy")
	return forUsers(command, cobra.MinimumNArgs(1), func(command *cobra.Command, names []string) error {
		return options.run(command, names, func(policy *v1alpha1.ConversionPolicy) (*edit, error) {
			if migration {
				return decideSuspendMigration(policy, on, calledAs(command))
			}
			return decidePause(policy, on, calledAs(command)), nil
		})
	})
}

func decideSuspendMigration(policy *v1alpha1.ConversionPolicy, on bool, program string) (*edit, error) {
	if err := checkNotDeleted(policy); err != nil {
		return nil, err
	}
	change := &edit{Policy: policy.Name, Field: "spec.migration.suspend", Value: on, Changed: policy.Spec.Migration.Suspend != on}
	last := policy.Status.Migration
	runs := last != nil && last.State == v1alpha1.MigrationRunning
	switch {
	case on && runs:
		change.Says = append(change.Says, strings.TrimSpace("run "+last.Run+" stops at "+last.Progress)+": resume it with "+program+" resume "+policy.Name+" --migration")
	case on:
		change.Says = append(change.Says, "no migration starts before "+program+" resume "+policy.Name+" --migration")
	case policy.Spec.Paused:
		change.Says = append(change.Says, "the operator is still paused: "+program+" resume "+policy.Name)
	case runs:
		change.Says = append(change.Says, "run "+last.Run+" continues from its checkpoint", "follow it: "+program+" status "+policy.Name+" --watch")
	}
	return change, nil
}

func decidePause(policy *v1alpha1.ConversionPolicy, on bool, program string) *edit {
	change := &edit{Policy: policy.Name, Field: "spec.paused", Value: on, Changed: policy.Spec.Paused != on}
	switch {
	case on:
		change.Says = append(change.Says, "changes wait, converter pods continue to answer; resume it with "+program+" resume "+policy.Name)
	case policy.Spec.Migration.Suspend:
		change.Says = append(change.Says, "migrations are still suspended: "+program+" resume "+policy.Name+" --migration")
	default:
		change.Says = append(change.Says, "follow it: "+program+" status "+policy.Name+" --watch")
	}
	return change
}
