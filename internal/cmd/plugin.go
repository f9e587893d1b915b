// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// The names under which kubectl finds the program as its plugin, and asks it how
// to complete what a person types
// (k8s.io/kubectl/pkg/cmd/plugin, plugin_completion.go).
const (
	programName    = "conversion-operator"
	pluginFile     = "kubectl-conversion"
	completionFile = "kubectl_complete-conversion"
	pluginName     = "kubectl conversion"
)

// NewCommand returns the command for the arguments with which the process was
// started: the first of them, the program's name, tells kubectl's plugin from
// conversion-operator itself.
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

// newPluginCommand returns kubectl's plugin: the commands for people.
func newPluginCommand(args []string) *cobra.Command {
	root := newPeoplesCommand()
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: pluginName}
	root.Short = "See and operate the conversion of custom resources"
	root.Long = `See and operate the conversion of custom resources.

A ConversionPolicy says how the objects of the versions of a
CustomResourceDefinition correspond. These commands show how far the operator is
with it, and how objects are converted; they try rules before they are applied,
and look for what endangers objects in any cluster.`
	sayAs(root, pluginName)
	root.SetArgs(args)
	return root
}

// sayAs lets all texts of a command, and of those below it, call the program by
// another name.
func sayAs(command *cobra.Command, name string) {
	for _, text := range []*string{&command.Long, &command.Example} {
		*text = strings.ReplaceAll(*text, programName+" ", name+" ")
	}
	for _, child := range command.Commands() {
		sayAs(child, name)
	}
}

// calledAs is how a person calls the program that a command belongs to.
func calledAs(command *cobra.Command) string { return command.Root().DisplayName() }
