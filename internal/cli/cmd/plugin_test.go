// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// start runs the program as a shell or kubectl does, under a name.
func start(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	command := NewCommand(args)
	command.SetOut(&out)
	command.SetErr(&out)
	expect.NoError(t, command.Execute())
	return out.String()
}

func TestProgramNames(t *testing.T) {
	for name, want := range map[string]string{
		"conversion-operator": "conversion-operator", "/bin/conversion-operator": "conversion-operator", "anything": "conversion-operator",
		"kubectl-conversion": "kubectl conversion", "/usr/local/bin/kubectl-conversion": "kubectl conversion", "kubectl-conversion.exe": "kubectl conversion",
	} {
		t.Run(name, func(t *testing.T) {
			help := start(t, name, "audit", "--help")
			usage, example := "\nUsage:\n  "+want+" audit [CUSTOMRESOURCEDEFINITION...] [flags]\n", "\nExamples:\n  "+want+" audit\n"
			expect.Contains(t, "the help", help, usage, example)
		})
	}
}

// TestPluginTextsUsePluginName checks every text of the plugin.
func TestPluginTextsUsePluginName(t *testing.T) {
	root := NewCommand([]string{"kubectl-conversion"})
	var visit func(*cobra.Command)
	visit = func(command *cobra.Command) {
		text := command.UsageString() + command.Long + command.Example
		expect.Equal(t, command.Name()+" speaks of "+programName+":\n"+text, false, strings.Contains(text, programName+" "))
		expect.Contains(t, command.Name(), text, pluginName)
		for _, child := range command.Commands() {
			visit(child)
		}
	}
	visit(root)
}

func TestPluginCommands(t *testing.T) {
	var people, plugin []string
	for _, command := range NewRootCommand().Commands() {
		if command.GroupID == groupUsers {
			people = append(people, command.Name())
		} else if !slices.Contains([]string{"manager", "run-migration", "check-converter"}, command.Name()) {
			t.Errorf("%s is in no group", command.Name())
		}
	}
	for _, command := range NewCommand([]string{"kubectl-conversion"}).Commands() {
		plugin = append(plugin, command.Name())
	}
	if diff := cmp.Diff(people, plugin); diff != "" || len(plugin) == 0 {
		t.Errorf("commands (-of people +of the plugin):\n%s", diff)
	}
}

// TestCompletion runs the completion as kubectl does.
func TestCompletion(t *testing.T) {
	const nothing = ":4\n" // cobra.ShellCompDirectiveNoFileComp
	for _, test := range []struct {
		typed []string
		want  []string
	}{
		{[]string{"au"}, []string{"audit"}},
		{[]string{"audit", "-o", ""}, []string{"table", "wide", "json", "yaml", "sarif", "junit"}},
		{[]string{"audit", "--severity="}, []string{"error", "warning", "note"}},
		{[]string{"verify", "-o", ""}, []string{"text", "json", "yaml", "sarif", "junit"}},
		{[]string{"verify", "--log-level", ""}, []string{"debug", "info", "error"}},
		{[]string{"verify", "one", ""}, nil},
		{[]string{"verify", "--kubeconfig=nowhere", ""}, nil},
	} {
		t.Run(strings.Join(test.typed, " "), func(t *testing.T) {
			got := start(t, append([]string{"kubectl_complete-conversion"}, test.typed...)...)
			suggested, rest, _ := strings.Cut(got, nothing)
			var names []string
			for line := range strings.Lines(suggested) {
				name, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
				names = append(names, name)
			}
			if diff := cmp.Diff(test.want, names); diff != "" || rest == got {
				t.Errorf("suggestions (-want +got):\n%s", diff)
			}
		})
	}
}
