// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"testing"
)

// endless is an input from which nothing comes. Its first read interrupts the command.
type endless struct{ interrupt context.CancelFunc }

func (e endless) Read([]byte) (int, error) {
	e.interrupt()
	select {}
}

// TestInterruptedInput: a signal ends each command that waits for its input.
func TestInterruptedInput(t *testing.T) {
	t.Parallel()
	files := []string{"--policy", sampleFile("2-policy.yaml"), "--crd", sampleFile("3-crd-both.yaml"), "-f", "-"}
	commands := map[string][]string{
		"audit":      {"-f", "-"},
		"convert":    append(slices.Clone(files), "--to=v1"),
		"diff":       {"-f", "-", "--before", sampleFile("2-policy.yaml")},
		"draft":      {"-f", "-"},
		"explain":    files,
		"playground": files,
		"report":     files,
		"rewrite":    append(slices.Clone(files), "--to=v1"),
		"verify":     files,
	}
	for _, name := range withFlag("filename") {
		if commands[name] == nil {
			t.Errorf("%s reads files, and is not in this test", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, interrupt := context.WithCancel(t.Context())
			root := NewRootCommand()
			root.SetIn(endless{interrupt})
			root.SetOut(io.Discard)
			root.SetErr(io.Discard)
			root.SetArgs(append([]string{name}, commands[name]...))
			if err := root.ExecuteContext(ctx); !errors.Is(err, context.Canceled) || ExitCode(err) != exitUnable {
				t.Errorf("exit code %d: %v", ExitCode(err), err)
			}
		})
	}
}
