// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command cmd plays random actions and failures on the cluster of the current kubeconfig.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	"github.com/conversion-operator/conversion-operator/internal/test/soak"
)

func main() {
	lasts := flag.Duration("time", time.Hour, "duration of the run; the last step is completed")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "seed of the sequence; the same seed gives the same steps") //nolint:gosec // any number will do
	list := flag.Int("list", 0, "print that many steps of the sequence without performing them")
	flag.Parse()
	if *list > 0 {
		for steps := soak.NewSequence(*seed); *list > 0; *list-- {
			fmt.Fprintln(os.Stdout, steps.Next())
		}
		return
	}
	if err := soak.Run(signals.SetupSignalHandler(), os.Stdout, *seed, *lasts); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
