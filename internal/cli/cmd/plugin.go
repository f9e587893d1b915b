// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// The names under which kubectl finds the program as its plugin, and runs it to
// complete what a user types
// (k8s.io/kubectl/pkg/cmd/plugin, plugin_completion.go).
const (
	programName    = "conversion-operator"
	pluginFile     = "kubectl-conversion"
	completionFile = "kubectl_complete-conversion"
	pluginName     = "kubectl conversion"
)

// NewCommand returns the command for the arguments of the process. The first one,
// the program's name, distinguishes kubectl's plugin from conversion-operator.
func NewCommand(args []string) *cobra.Command {
	switch strings.TrimSuffix(filepath.Base(args[0]), ".exe") {
	case pluginFile:
		return newPluginCommand(args[1:])
	case completionFile:
		return newPluginCommand(append([]string{cobra.ShellCompRequestCmd}, args[1:]...))
	}
	root := NewRootCommand()
	root.SetArgs(args[1:])
	return root
}

// newPluginCommand returns kubectl's plugin: the commands for users.
func newPluginCommand(args []string) *cobra.Command {
	root := newUserCommand()
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: pluginName}
	root.Short = "See and operate the conversion of custom resources"
	root.Long = `See and operate the conversion of custom resources.

A ConversionPolicy describes how the objects of the versions of a
CustomResourceDefinition correspond. These commands show the progress of the
operator, and how objects convert; they test rules before you apply them, and find
risks for objects in any cluster.`
	replaceProgramName(root, pluginName)
	root.SetArgs(args)
	return root
}

// replaceProgramName replaces the name of the program in the texts of a command and of its
// subcommands.
func replaceProgramName(command *cobra.Command, name string) {
	for _, text := range []*string{&command.Long, &command.Example} {
		*text = strings.ReplaceAll(*text, programName+" ", name+" ")
	}
	for _, child := range command.Commands() {
		replaceProgramName(child, name)
	}
}

// calledAs returns the name by which the user called the program.
func calledAs(command *cobra.Command) string { return command.Root().DisplayName() }
