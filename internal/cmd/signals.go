// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// UntilSignal returns a context that ends with the first SIGINT or SIGTERM. The second one kills the process, as if it
// had not asked for signals: a command that reads stdin, or computes, does not see the end of the context.
func UntilSignal(ctx context.Context) (until context.Context, stop context.CancelFunc) {
	until, stop = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(until, stop)
	return until, stop
}
