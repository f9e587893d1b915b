// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
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
	for name, variants := range fileCommands(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, interrupt := context.WithCancel(t.Context())
			args := append([]string{name}, variants[0]...)
			args[slices.Index(args, "FILE")] = "-"
			if _, _, err := runIn(ctx, endless{interrupt}, args...); !errors.Is(err, context.Canceled) || ExitCode(err) != exitUnable {
				t.Errorf("exit code %d: %v", ExitCode(err), err)
			}
		})
	}
}
