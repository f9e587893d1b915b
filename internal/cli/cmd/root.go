// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"io"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// logOptions are flags of all subcommands.
type logOptions struct {
	level  string
	format string
}

// NewRootCommand returns the command conversion-operator with all its subcommands.
func NewRootCommand() *cobra.Command {
	command := newUserCommand()
	addGroup(command, groupPods, "Commands that run in pods:", newManagerCommand(), newServeCommand(), newRunMigrationCommand())
	return command
}

// newUserCommand returns the command with the subcommands for users.
func newUserCommand() *cobra.Command {
	options := logOptions{}
	command := &cobra.Command{
		Use:   "conversion-operator",
		Short: "Change the schema of a CustomResourceDefinition safely",
		Long: `Change the schema of a CustomResourceDefinition safely.

A ConversionPolicy describes how the objects of two versions correspond.
conversion-operator runs a conversion webhook for it, tests the webhook, points the
CustomResourceDefinition at it, and rewrites the stored objects, each step in a safe
order.

Its parts are subcommands of one binary. Some run in pods, from one image. The
others are for users and their pipelines, and are also a plugin of kubectl.`,
		Version:           versionText(),
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		PersistentPreRunE: func(command *cobra.Command, _ []string) error {
			return unable(options.install(command))
		},
	}
	flags := command.PersistentFlags()
	flags.StringVar(&options.level, "log-level", "info", "minimum severity to log: debug, info or error")
	flags.StringVar(&options.format, "log-format", "json", "log format: json or text")
	complete(command, "log-level", "debug", "info", "error")
	complete(command, "log-format", "json", "text")
	addGroup(command, groupUsers, "Commands for users and their pipelines:",
		newArchiveCommand(), newAuditCommand(), newConvertCommand(), newDependentsCommand(), newDiffCommand(), newDraftCommand(), newExplainCommand(), newMigrateCommand(), newPlaygroundCommand(), newReportCommand(),
		newResumeCommand(), newRewriteCommand(), newStatusCommand(), newSuspendCommand(), newTriggerCommand(),
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
func (o *logOptions) install(command *cobra.Command) error {
	log, err := o.newLogger(command.ErrOrStderr())
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

func (o *logOptions) newLogger(to io.Writer) (logr.Logger, error) {
	levels := map[string]zapcore.Level{"debug": zapcore.DebugLevel, "info": zapcore.InfoLevel, "error": zapcore.ErrorLevel}
	level, ok := levels[o.level]
	if !ok {
		return logr.Discard(), fmt.Errorf("--log-level must be debug, info or error, is %q", o.level)
	}
	formats := map[string]zap.Opts{"json": zap.JSONEncoder(readableTime), "text": zap.ConsoleEncoder(readableTime)}
	format, ok := formats[o.format]
	if !ok {
		return logr.Discard(), fmt.Errorf("--log-format must be json or text, is %q", o.format)
	}
	// The position of a log call does not help with an error from another place.
	// Panics have their stack as a value.
	return zap.New(zap.WriteTo(to), zap.Level(level), zap.StacktraceLevel(zapcore.PanicLevel), format), nil
}

func readableTime(config *zapcore.EncoderConfig) {
	config.EncodeTime = zapcore.RFC3339TimeEncoder
}
