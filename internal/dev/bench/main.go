// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bench compares the operator with other software that does the same, in one run, and prints a
// table for each case:
//
//	bench SUITE [flags]
//
// Each suite has a package: converters (suite conversion), lists, scale, migrations. Package measure
// measures and prints, package cluster starts what is measured. Run it with `make bench`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/conversion-operator/conversion-operator/internal/dev/bench/converters"
	"github.com/conversion-operator/conversion-operator/internal/dev/bench/lists"
	"github.com/conversion-operator/conversion-operator/internal/dev/bench/measure"
	"github.com/conversion-operator/conversion-operator/internal/dev/bench/migrations"
	"github.com/conversion-operator/conversion-operator/internal/dev/bench/scale"
)

// suite measures subjects.
type suite interface {
	Flags(flags *flag.FlagSet)
	Run(ctx context.Context, results *measure.Results) error
}

var suites = map[string]suite{
	"conversion": &converters.Suite{}, "lists": &lists.Suite{}, "scale": &scale.Suite{}, "migration": &migrations.Suite{},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// Of the libraries; progress is what a reader needs.
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// run runs a suite, and prints what it has measured, even if it fails.
func run(ctx context.Context, args []string, to, progress io.Writer) error {
	name := strings.Join(args[:min(1, len(args))], "")
	chosen, found := suites[name]
	if !found {
		return fmt.Errorf("there is no suite %q: choose conversion, lists, scale or migration", name)
	}
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(progress)
	chosen.Flags(flags)
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	results := &measure.Results{Progress: progress}
	err := chosen.Run(ctx, results)
	fmt.Fprintf(to, "%s, %s, %s/%s, %d CPUs\n", name, runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	return errors.Join(err, results.Print(to))
}
