// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pod is the program of a converter pod, which command converter runs. It is not part of the command
// line of conversion-operator, so that a pod links and loads only what answers reviews.
package pod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/process"
	"github.com/conversion-operator/conversion-operator/internal/webhook"
)

// usage is what --help prints, before the flags.
const usage = `Answer the API server's ConversionReviews.

The manager starts this program in converter pods. It needs two mounted
directories, the rulesets and a serving certificate, and no access to the API. It
follows changes of both.

Each ruleset has its own path. A pod has more than one ruleset while rules change:
API servers use the previous one until they see the change. A ruleset that is removed
from the directory is served until no API server has requested it for ten minutes.

With --shared, the pod serves rulesets of several CustomResourceDefinitions. While it
does, each of them may use half of the memory and of the processors, and waiting
requests of different CustomResourceDefinitions take turns.

On a stop signal, the program reports that it is not ready, continues to answer until
API servers have closed their connections, finishes the calls in flight, and ends.

Usage:
  converter [flags]

Flags:
`

// options are the flags of the program.
type options struct {
	rulesets     string
	shared       bool
	certificates string
	address      string
	drain        time.Duration
	alone        bool
	metrics      string
	maxBody      int64
	logs         process.LogOptions
	version      bool
}

// Run runs the program with these arguments until the context ends, and its pod has drained. It logs to output.
func Run(ctx context.Context, args []string, output io.Writer) error {
	o := options{}
	flags := o.flags()
	flags.SetOutput(output)
	flags.Usage = func() { fmt.Fprint(output, usage, flags.FlagUsages()) }
	err := flags.Parse(args)
	version, _ := process.Version()
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return nil
	case err != nil:
		return err
	case flags.NArg() > 0:
		return fmt.Errorf("unknown argument %q: the program has flags only", flags.Arg(0))
	case o.version:
		fmt.Fprintln(output, "converter version", version)
		return nil
	}
	if err := o.validate(); err != nil {
		return err
	}
	log, err := o.logs.NewLogger(output)
	if err != nil {
		return err
	}
	return o.serve(ctx, version, log)
}

func (o *options) flags() *pflag.FlagSet {
	flags := pflag.NewFlagSet("converter", pflag.ContinueOnError)
	flags.StringVar(&o.rulesets, "rulesets", "/etc/conversion-operator/rulesets", "directory of the rulesets, "+conversion.StoredName("OWNER", "HASH")+", all of which the program serves")
	flags.BoolVar(&o.shared, "shared", false, "serve rulesets of several CustomResourceDefinitions; "+
		"the program starts without rulesets, and a ruleset that cannot be loaded affects no other")
	flags.StringVar(&o.certificates, "certificates", "/etc/conversion-operator/tls", "directory of tls.crt and tls.key")
	flags.StringVar(&o.address, "bind-address", webhook.DefaultAddress, "address to listen on, with TLS")
	flags.DurationVar(&o.drain, "drain", webhook.DefaultDrainPeriod,
		"how long to wait at most, after a stop signal, until API servers have closed their connections; they close one without calls after 90s")
	flags.BoolVar(&o.alone, "alone", false,
		"no other pod converts until the next one has started: the program stays ready after a stop signal, for the whole time of --drain")
	flags.StringVar(&o.metrics, "metrics-bind-address", process.DefaultMetricsAddress,
		"address of /metrics for Prometheus, without TLS; 0 for none")
	flags.Int64Var(&o.maxBody, "max-body-bytes", webhook.DefaultMaxBodyBytes, "maximum size of a review; API servers send less than the default")
	o.logs.AddFlags(flags)
	flags.BoolVar(&o.version, "version", false, "print the version")
	return flags
}

func (o *options) validate() error {
	_, port, err := net.SplitHostPort(o.address)
	if number, notNumber := strconv.ParseUint(port, 10, 16); err != nil || notNumber != nil || number == 0 {
		return fmt.Errorf("--bind-address must be an address with a port between 1 and 65535, such as :9443; it is %q", o.address)
	}
	if o.drain < 0 {
		return fmt.Errorf("--drain must not be negative, is %s", o.drain)
	}
	if o.maxBody < 1 {
		return fmt.Errorf("--max-body-bytes must be at least 1, is %d", o.maxBody)
	}
	return nil
}

// serve compiles the rulesets before the server listens, so that a pod that answers at all is ready for each of
// them.
func (o *options) serve(ctx context.Context, version string, log logr.Logger) error {
	memory := process.LimitMemory()
	rulesets, err := webhook.OpenRulesets(o.rulesets, log, o.shared)
	if err != nil {
		return err
	}
	handler := webhook.NewHandler(rulesets.Rulesets(), webhook.HandlerOptions{
		BuildVersion: version,
		MaxBodyBytes: o.maxBody,
		MemoryLimit:  memory,
		Log:          log,
	})
	server, err := webhook.NewServer(handler, webhook.ServerOptions{
		Address:              o.address,
		CertificateDirectory: o.certificates,
		Rulesets:             rulesets,
		MetricsAddress:       o.metrics,
		DrainPeriod:          o.drain,
		Alone:                o.alone,
		Log:                  log,
	})
	if err != nil {
		return err
	}
	return server.Run(ctx)
}
