// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// busyProcess is set in the process that TestSecondSignal starts.
const busyProcess = "CONVERSION_OPERATOR_TEST_BUSY"

// TestSecondSignal: the first Ctrl-C ends the context, and a second one ends a command that does not look at it.
func TestSecondSignal(t *testing.T) {
	if os.Getenv(busyProcess) != "" {
		ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		busy := forUsers(&cobra.Command{}, cobra.NoArgs, func(command *cobra.Command, _ []string) error {
			_, _ = os.Stdout.WriteString("ready\n")
			<-command.Context().Done()
			_, _ = os.Stdout.WriteString("interrupted\n")
			_, err := io.Copy(io.Discard, os.Stdin) // the other process does not close it
			return err
		})
		busy.SetArgs([]string{})
		expect.NoError(t, busy.ExecuteContext(ctx))
	}
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSecondSignal$")
	command.Env = append(os.Environ(), busyProcess+"=yes")
	stdout, err := command.StdoutPipe()
	expect.NoError(t, err)
	_, err = command.StdinPipe()
	expect.NoError(t, err)
	expect.NoError(t, command.Start())
	lines := bufio.NewReader(stdout)
	expectLine(t, lines, "ready\n")
	expect.NoError(t, command.Process.Signal(os.Interrupt))
	expectLine(t, lines, "interrupted\n")
	// The process stops asking for signals just after that: repeat the second one until it arrives.
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	for {
		select {
		case <-again.C:
			_ = command.Process.Signal(os.Interrupt) // it may have ended
			continue
		case err = <-ended:
		}
		break
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGINT {
		t.Errorf("after the second signal: %v", err)
	}
}

func expectLine(t *testing.T, lines *bufio.Reader, want string) {
	t.Helper()
	line, err := lines.ReadString('\n')
	expect.NoError(t, err)
	if line != want {
		t.Fatalf("the process says %q, want %q", line, want)
	}
}
