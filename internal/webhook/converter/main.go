// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command converter answers the ConversionReviews of API servers, in converter pods.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/conversion-operator/conversion-operator/internal/webhook/pod"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := pod.Run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}
