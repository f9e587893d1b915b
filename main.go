// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command conversion-operator changes the schema of CustomResourceDefinitions safely.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/conversion-operator/conversion-operator/internal/cli/cmd"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := cmd.NewCommand(os.Args).ExecuteContext(ctx)
	stop()
	os.Exit(cmd.ExitCode(err))
}
