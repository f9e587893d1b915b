// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bench compares the speed of the operator with other software that does the same, in one
// run. It prints a table per case, and writes all numbers as rows to a file, where rows of other
// suites stay.
//
// Each suite has a package: converters, lists, scale, migrations. Package measure does the measuring. Run
// it with `make bench`.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/conversion-operator/conversion-operator/internal/bench/converters"
	"github.com/conversion-operator/conversion-operator/internal/bench/lists"
	"github.com/conversion-operator/conversion-operator/internal/bench/measure"
	"github.com/conversion-operator/conversion-operator/internal/bench/migrations"
	"github.com/conversion-operator/conversion-operator/internal/bench/scale"
)

type options struct {
	suite      string
	each       time.Duration
	idle       int
	output     string
	binary     string
	lists      lists.Options
	scale      scale.Options
	migrations migrations.Options
}

// suites are all suites, in the order of running.
var suites = []struct {
	name string
	run  func(ctx context.Context, progress io.Writer, o options) ([]measure.Row, error)
}{
	{converters.Suite, runConversion},
	{converters.LatencySuite, runLatency},
	{lists.Suite, runLists},
	{scale.Suite, runScale},
	{scale.OwnSuite, runScaleOwn},
	{migrations.Suite, runMigration},
	{migrations.GrowthSuite, runGrowth},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := start(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// start runs suites, or a subject in a process of its own.
func start(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == converters.ServeTypedCommand {
		return converters.ServeTyped(ctx, args[1:])
	}
	ctrl.SetLogger(logr.Discard()) // of the libraries; progress is what a reader needs
	return run(ctx, args, os.Stdout, os.Stderr)
}

// run runs a suite.
func run(ctx context.Context, args []string, to, progress io.Writer) error {
	o, err := parse(args, progress)
	if err != nil {
		return err
	}
	var rows []measure.Row
	for _, suite := range suites {
		if o.suite != suite.name {
			continue
		}
		if rows, err = suite.run(ctx, progress, o); err != nil {
			return fmt.Errorf("suite %s: %w", suite.name, err)
		}
	}
	if err := measure.WriteFile(o.output, o.suite, rows); err != nil {
		return err
	}
	fmt.Fprintf(to, "%s, %s/%s, %d CPUs\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	if err := measure.Tables(to, rows); err != nil {
		return err
	}
	fmt.Fprintf(to, "\n%d rows are in %s\n", len(rows), o.output)
	return nil
}

func parse(args []string, messages io.Writer) (options, error) {
	o := options{}
	var names []string
	for _, suite := range suites {
		names = append(names, suite.name)
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(messages)
	flags.StringVar(&o.suite, "suite", "", "the suite to run, one of "+strings.Join(names, ", "))
	flags.DurationVar(&o.each, "time", 600*time.Millisecond, "how long each subject runs in each case; 20 times as long in suite latency")
	flags.IntVar(&o.idle, "idle", 199, "how many idle kinds a pod serves beside the one that is called in suite latency")
	o.lists.Sizes, o.lists.Counts = []int{1, 10, 100}, []int{100, 1000, 5000}
	flags.Func("sizes", "sizes of objects in suite lists, in KiB (default 1,10,100)", numbers(&o.lists.Sizes))
	flags.Func("counts", "numbers of objects in a list of suite lists (default 100,1000,5000)", numbers(&o.lists.Counts))
	flags.IntVar(&o.lists.Most, "most-listed", 100, "size of the largest list of suite lists, in MiB; larger ones are left out")
	flags.StringVar(&o.output, "o", "bin/bench.json", "file to write the rows to")
	flags.StringVar(&o.binary, "binary", "bin/conversion-operator", "the operator's binary, as make build makes it")
	flags.IntVar(&o.scale.Definitions, "definitions", 1000, "how many CustomResourceDefinitions there are in suite scale")
	flags.IntVar(&o.scale.Policies, "policies", 200, "how many of them get a ConversionPolicy at once")
	flags.IntVar(&o.scale.Singles, "singles", 20, "how many of them get one afterwards, one at a time")
	flags.IntVar(&o.scale.Most, "most", 1000, "how many of them have one in the end, if that is more")
	flags.DurationVar(&o.scale.Rest, "rest", time.Minute, "how long a process is watched at rest")
	flags.StringVar(&o.scale.Injector, "injector", "bin/cainjector", "another program to be watched at rest; empty for none")
	flags.IntVar(&o.migrations.Objects, "objects", 20_000, "how many objects of each kind there are in suite migration and suite growth")
	flags.DurationVar(&o.migrations.Alone, "alone", 30*time.Second, "how long another client is watched alone in suite migration")
	flags.StringVar(&o.migrations.Setup, "setup", "", "how the name of a setup of suite migration begins, to run no other: strategy, or rules")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if slices.Contains(names, o.suite) {
		return o, nil
	}
	return o, fmt.Errorf("there is no suite %q: choose of %s", o.suite, strings.Join(names, ", "))
}

// numbers parses a flag with numbers between commas.
func numbers(to *[]int) func(string) error {
	return func(text string) error {
		*to = nil
		for each := range strings.SplitSeq(text, ",") {
			number, err := strconv.Atoi(each)
			if err != nil {
				return err
			}
			*to = append(*to, number)
		}
		return nil
	}
}

func runConversion(ctx context.Context, progress io.Writer, o options) ([]measure.Row, error) {
	rows, err := converters.Handlers(ctx, progress, o.each)
	if err != nil {
		return nil, err
	}
	ready, err := converters.Ready(ctx, progress, o.binary, converters.Leaves, o.each)
	return append(rows, ready...), err
}

// latencyTime is how much longer subjects run for a percentile than for a minimum.
const latencyTime = 20

func runLatency(ctx context.Context, progress io.Writer, o options) ([]measure.Row, error) {
	bench, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return converters.Latency(ctx, progress, converters.LatencyOptions{Binary: o.binary, Bench: bench, Idle: o.idle, Each: latencyTime * o.each})
}

func runLists(ctx context.Context, progress io.Writer, o options) (rows []measure.Row, err error) {
	o.lists.Binary = o.binary
	if o.lists.Bench, err = os.Executable(); err != nil {
		return nil, err
	}
	return lists.Run(ctx, progress, o.lists)
}

func runScale(ctx context.Context, progress io.Writer, o options) ([]measure.Row, error) {
	o.scale.Binary = o.binary
	return scale.Run(ctx, progress, o.scale)
}

func runScaleOwn(ctx context.Context, progress io.Writer, o options) ([]measure.Row, error) {
	o.scale.OwnPods, o.scale.Most, o.scale.Injector = true, 0, ""
	return runScale(ctx, progress, o)
}

func runMigration(ctx context.Context, progress io.Writer, o options) ([]measure.Row, error) {
	o.migrations.Binary = o.binary
	return migrations.Run(ctx, progress, o.migrations)
}

func runGrowth(ctx context.Context, progress io.Writer, o options) ([]measure.Row, error) {
	o.migrations.Binary = o.binary
	return migrations.RunGrowth(ctx, progress, o.migrations)
}
