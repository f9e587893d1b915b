// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command conversion-operator changes the schema of CustomResourceDefinitions safely.
package main

import (
	"context"
	"os"

	"github.com/conversion-operator/conversion-operator/internal/cmd"
)

func main() {
	ctx, stop := cmd.UntilSignal(context.Background())
	err := cmd.NewCommand(os.Args).ExecuteContext(ctx)
	stop()
	os.Exit(cmd.ExitCode(err))
}
