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
	flag.Parse()
	if err := soak.Run(signals.SetupSignalHandler(), os.Stdout, *seed, *lasts); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
