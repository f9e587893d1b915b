// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// The exit codes of the commands for users and their pipelines. Any other
// command ends with 1 when it fails.
const (
	// exitFound means that the command did its work and found problems.
	exitFound = 1
	// exitUnable means that it could not do its work.
	exitUnable = 2
)

// exitError is an error with its own exit code.
type exitError struct {
	code int
	error
}

func (e *exitError) Unwrap() error { return e.error }

// ExitCode returns the exit code of the process.
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	if exit, ok := errors.AsType[*exitError](err); ok {
		return exit.code
	}
	return 1
}

// unable gives an error the exit code of a command that could not do its work,
// unless the error already has an exit code.
func unable(err error) error {
	if _, ok := errors.AsType[*exitError](err); ok || err == nil {
		return err
	}
	return &exitError{exitUnable, err}
}

// forUsers sets the function of a command for users. The command exits with 2 for wrong flags and
// arguments, and whenever it could not do its work.
func forUsers(command *cobra.Command, args cobra.PositionalArgs, run func(command *cobra.Command, args []string) error) *cobra.Command {
	command.Args = func(command *cobra.Command, given []string) error { return unable(args(command, given)) }
	command.RunE = func(command *cobra.Command, given []string) error {
		// A second signal ends a command that does not notice the first one. Pods ignore it: they drain.
		defer context.AfterFunc(command.Context(), func() { signal.Reset(os.Interrupt, syscall.SIGTERM) })()
		return unable(run(command, given))
	}
	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return unable(err) })
	return command
}

// stdinOf returns the standard input of a command. A user can interrupt the command while it waits for input.
func stdinOf(command *cobra.Command) io.Reader { return until{command.Context(), command.InOrStdin()} }

// until is a reader that ends with its context, also while it waits for input.
type until struct {
	context.Context
	io.Reader
}

// maxRead bounds the memory for one read.
const maxRead = 1 << 16

func (u until) Read(p []byte) (int, error) {
	if u.Err() != nil {
		return 0, context.Cause(u)
	}
	type result struct {
		count int
		err   error
	}
	// A read that goes on after the end must not write to memory of the caller.
	buffer, done := make([]byte, min(len(p), maxRead)), make(chan result, 1)
	go func() {
		count, err := u.Reader.Read(buffer)
		done <- result{count, err}
	}()
	select {
	case <-u.Done():
		return 0, context.Cause(u)
	case read := <-done:
		return copy(p, buffer[:read.count]), read.err
	}
}
