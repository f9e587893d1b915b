// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/conversion-operator/conversion-operator/internal/scheme"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

func main() {
	lasts := flag.Duration("time", time.Hour, "duration of the run; the last step is completed")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "seed of the sequence; the same seed gives the same steps") //nolint:gosec // any number will do
	list := flag.Int("list", 0, "print that many steps of the sequence without performing them")
	count := flag.Int("neighbors", 0, "number of other policies in the same fleets, whose objects clients read and write all the time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, *seed, *lasts, *list, *count)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, seed uint64, lasts time.Duration, list, neighbors int) error {
	steps := newSequence(seed)
	for range list {
		fmt.Fprintln(out, steps.next())
	}
	if list > 0 {
		return nil
	}
	p, err := newPlayer(out)
	if err != nil {
		return err
	}
	teller := scenarios.NewTeller(out, p.dir)
	if err := scenarios.Install(ctx, teller); err != nil {
		return err
	}
	teller.Say("Some steps overwrite spec.conversion, which the guard would refuse.")
	if _, err := teller.Show(ctx, "kubectl", "delete", "validatingadmissionpolicybinding", "conversion-guard.conversion-operator.io"); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nseed %d, for %s\n", seed, lasts)
	start := time.Now()
	if err := p.playBeside(ctx, neighbors, seed, steps, lasts); err != nil {
		return p.explain(seed, err)
	}
	fmt.Fprintf(out, "seed %d: %d steps in %s, %d reads meanwhile, and every invariant held\n",
		seed, len(p.played), time.Since(start).Round(time.Second), p.reads)
	return nil
}

// explain returns an error with the violation, and how to reproduce it.
func (p *player) explain(seed uint64, violated error) error {
	var sequence strings.Builder
	for _, s := range p.played {
		fmt.Fprintln(&sequence, s)
	}
	again := fmt.Sprintf("make soak SOAKSEED=%d", seed)
	if count := len(p.neighbors.subjects); count > 0 {
		again += fmt.Sprintf(" SOAKPOLICIES=%d", count)
	}
	return fmt.Errorf("\nthe steps so far:\n%s\nFAILED with seed %d in step %d (%s plays it again):\n%w",
		&sequence, seed, len(p.played), again, violated)
}

// requestTimeout bounds requests to an API server that hangs.
const requestTimeout = 15 * time.Second

func newPlayer(out io.Writer) (*player, error) {
	root, err := scenarios.Root()
	if err != nil {
		return nil, err
	}
	kubeconfig, err := config.GetConfig()
	if err != nil {
		return nil, err
	}
	kubeconfig.QPS, kubeconfig.Timeout = -1, requestTimeout
	kubeconfig.WarningHandler = rest.NoWarnings{} // versions are deprecated all the time
	p := &player{out: out, dir: root, ledger: newLedger(), last: map[string]observation{}, pruned: map[string]pruning{}}
	if p.dynamic, err = dynamic.NewForConfig(kubeconfig); err != nil {
		return nil, err
	}
	requests, err := discovery.NewDiscoveryClientForConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	p.metrics = requests.RESTClient()
	p.cluster, err = client.New(kubeconfig, client.Options{Scheme: scheme.New()})
	return p, err
}
