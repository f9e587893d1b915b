// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command demo plays the stories of both CronTabs on the cluster of the current kubeconfig, and
// fails if a claim is false.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// count is the number of generated objects per story.
const count = 300

// propagation is enough for the demo's only API server.
const propagation = 2 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	if ctx.Err() != nil {
		fmt.Fprintln(os.Stderr, "\nThe demo was interrupted.")
		os.Exit(130)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "\nThe demo FAILED:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	dir, err := scenarios.Root()
	if err != nil {
		return err
	}
	kubeconfig, err := config.GetConfig()
	if err != nil {
		return err
	}
	fleet, err := scenarios.NewFleet(kubeconfig)
	if err != nil {
		return err
	}
	teller := scenarios.NewTeller(os.Stdout, dir)
	if err := scenarios.Install(ctx, teller, propagation); err != nil {
		return err
	}
	for _, crontab := range []scenarios.CronTab{scenarios.HostPort(), scenarios.CronSpec()} {
		play := &scenarios.Play{Teller: teller, Fleet: fleet, CronTab: crontab, Count: count}
		if err := play.Tell(ctx); err != nil {
			return err
		}
	}
	teller.Title("Summary")
	teller.Show(ctx, "kubectl", "get", "conversionpolicies", "-o", "wide")
	teller.Say("%d claims were checked and hold. It took %s.", teller.Claims(), teller.Elapsed().Round(time.Second))
	return teller.Failure()
}
