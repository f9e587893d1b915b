// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"io"

	"github.com/spf13/cobra"
)

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
