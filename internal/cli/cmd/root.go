// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/conversion-operator/conversion-operator/internal/process"
)

// NewRootCommand returns the command conversion-operator with all its subcommands.
func NewRootCommand() *cobra.Command {
	command := newUserCommand()
	addGroup(command, groupPods, "Commands that run in pods:", newManagerCommand(), newRunMigrationCommand(), newCheckConverterCommand())
	return command
}

// newUserCommand returns the command with the subcommands for users.
func newUserCommand() *cobra.Command {
	logs := process.LogOptions{}
	command := &cobra.Command{
		Use:   "conversion-operator",
		Short: "Change the schema of a CustomResourceDefinition safely",
		Long: `Change the schema of a CustomResourceDefinition safely.

A ConversionPolicy describes how the objects of two versions correspond.
conversion-operator runs a conversion webhook for it, tests the webhook, points the
CustomResourceDefinition at it, and rewrites the stored objects, each step in a safe
order.

Some commands run in pods. The others are for users and their pipelines, and are
also a plugin of kubectl.`,
		Version:           versionText(),
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		PersistentPreRunE: func(command *cobra.Command, _ []string) error {
			return unable(install(command, logs))
		},
	}
	logs.AddFlags(command.PersistentFlags())
	complete(command, "log-level", "debug", "info", "error")
	complete(command, "log-format", "json", "text")
	addGroup(command, groupUsers, "Commands for users and their pipelines:",
		newArchiveCommand(), newAuditCommand(), newConvertCommand(), newDependentsCommand(), newDiffCommand(), newDraftCommand(), newExplainCommand(), newExportCommand(), newMigrateCommand(), newPlanCommand(), newPlaygroundCommand(), newReportCommand(),
		newResumeCommand(), newRewriteCommand(), newStatusCommand(), newPauseCommand(), newTriggerCommand(),
		newUninstallCheckCommand(), newVerifyCommand(), newVersionCommand())
	return command
}

// The groups of commands.
const (
	groupUsers = "users"
	groupPods  = "pods"
)

func addGroup(root *cobra.Command, id, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: id, Title: title})
	for _, command := range commands {
		command.GroupID = id
		root.AddCommand(command)
	}
}

// install passes the logger to everything that logs: to the command through its
// context, to controller-runtime, and to client-go. A command for users says everything in its
// output and its error. It logs only on request.
func install(command *cobra.Command, logs process.LogOptions) error {
	log, err := logs.NewLogger(command.ErrOrStderr())
	if err != nil {
		return err
	}
	if command.GroupID == groupUsers && !command.Flags().Changed("log-level") {
		log = logr.Discard()
	}
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	command.SetContext(logr.NewContext(command.Context(), log))
	return nil
}
