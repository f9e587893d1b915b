// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command commands prints the documentation page of all commands and flags.
package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/conversion-operator/conversion-operator/internal/cli/cmd"
)

const head = `<!-- Generated from the commands by make cli-reference. -->

# Commands

One program, ` + "`conversion-operator`" + `, is all parts of the operator, and a tool for people. This is what ` + "`--help`" + ` says.

`

// shared is the heading of the flags that many commands have.
const shared = "Flags for the cluster"

func main() {
	// Defaults in help texts must not name this user's home directory.
	if err := os.Setenv("HOME", "$HOME"); err != nil {
		panic(err) // the name is not empty
	}
	page := &strings.Builder{}
	fmt.Fprint(page, head)
	commands := visible(cmd.NewRootCommand())
	for _, command := range commands {
		fmt.Fprintf(page, "- [%s](#%s): %s\n", command.CommandPath(), anchor(command.CommandPath()), command.Short)
	}
	fmt.Fprintln(page)
	for _, command := range commands {
		describe(page, command)
	}
	fmt.Fprintf(page, "## %s\n\nThose of `kubectl`:\n\n", shared)
	block(page, "text", clusterFlags().FlagUsages())
	fmt.Fprintln(os.Stdout, strings.TrimSpace(page.String()))
}

// visible returns a command and its subcommands, sorted by name.
func visible(command *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{command}
	for _, child := range command.Commands() {
		if child.IsAvailableCommand() && child.Name() != "help" {
			all = append(all, visible(child)...)
		}
	}
	return all
}

func anchor(heading string) string { return strings.ReplaceAll(strings.ToLower(heading), " ", "-") }

func describe(out io.Writer, command *cobra.Command) {
	fmt.Fprintf(out, "## %s\n\n", command.CommandPath())
	about := command.Long
	if about == "" {
		about = command.Short
	}
	block(out, "text", about)
	if command.Runnable() {
		block(out, "text", command.UseLine())
	}
	if command.Example != "" {
		block(out, "sh "+typed(command), command.Example)
	}
	own, common := pflag.NewFlagSet("", pflag.ContinueOnError), false
	cluster := clusterFlags()
	add := func(flag *pflag.Flag) {
		if known := cluster.Lookup(flag.Name); known != nil && known.Usage == flag.Usage {
			common = true
			return
		}
		own.AddFlag(flag)
	}
	command.InitDefaultHelpFlag()
	command.LocalFlags().VisitAll(add)
	if own.HasAvailableFlags() {
		block(out, "text", own.FlagUsages())
	}
	if common {
		fmt.Fprintf(out, "And the [%s](#%s).\n\n", strings.ToLower(shared[:1])+shared[1:], anchor(shared))
	}
}

// typed returns the mark that says whether a test runs the examples of a command. Those of status
// follow a policy until it is ready, and one of them forever; a playground serves until it is stopped;
// those of migrate rewrite a whole cluster.
func typed(command *cobra.Command) string {
	switch command.Name() {
	case "status", "playground":
		return "untyped=follows"
	case "migrate":
		return "untyped=migrates"
	}
	return "play"
}

func clusterFlags() *pflag.FlagSet {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	genericclioptions.NewConfigFlags(true).AddFlags(flags)
	return flags
}

// block writes a code block without trailing blanks.
func block(out io.Writer, info, text string) {
	fmt.Fprintf(out, "```%s\n", info)
	for line := range strings.Lines(strings.Trim(text, "\n")) {
		fmt.Fprintln(out, strings.TrimRight(line, " \n"))
	}
	fmt.Fprint(out, "```\n\n")
}
