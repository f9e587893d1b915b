// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/webhook"
)

// defaultMetricsAddress is the port that Prometheus configurations commonly use.
const defaultMetricsAddress = ":8080"

// serveOptions are the flags of the serve subcommand.
type serveOptions struct {
	rulesets     string
	shared       bool
	certificates string
	address      string
	drain        time.Duration
	alone        bool
	metrics      string
	maxBody      int64
}

func newServeCommand() *cobra.Command {
	options := serveOptions{}
	command := &cobra.Command{
		Use:   "serve",
		Short: "Answer the API server's ConversionReviews",
		Long: `Answer the API server's ConversionReviews.

The manager starts this command in converter pods. It needs two mounted
directories, the rulesets and a serving certificate, and no access to the API. It
follows changes of both.

Each ruleset has its own path. A pod has more than one ruleset while rules change:
API servers use the previous one until they see the change. A ruleset that is removed
from the directory is served until no API server has requested it for ten minutes.

With --shared, the pod serves rulesets of several CustomResourceDefinitions. While it
does, each of them may use half of the memory and of the processors, and waiting
requests of different CustomResourceDefinitions take turns.

On a stop signal, the command reports that it is not ready, continues to answer until
API servers have closed their connections, finishes the calls in flight, and ends.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := options.validate(); err != nil {
				return err
			}
			return options.run(command.Context())
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.rulesets, "rulesets", "/etc/conversion-operator/rulesets", "directory of the rulesets, "+conversion.StoredName("OWNER", "HASH")+", all of which the command serves")
	flags.BoolVar(&options.shared, "shared", false, "serve rulesets of several CustomResourceDefinitions; "+
		"the command starts without rulesets, and a ruleset that cannot be loaded affects no other")
	flags.StringVar(&options.certificates, "certificates", "/etc/conversion-operator/tls", "directory of tls.crt and tls.key")
	flags.StringVar(&options.address, "bind-address", webhook.DefaultAddress, "address to listen on, with TLS")
	flags.DurationVar(&options.drain, "drain", webhook.DefaultDrainPeriod,
		"how long to wait at most, after a stop signal, until API servers have closed their connections; they close one without calls after 90s")
	flags.BoolVar(&options.alone, "alone", false,
		"no other pod converts until the next one has started: the command stays ready after a stop signal, for the whole time of --drain")
	flags.StringVar(&options.metrics, "metrics-bind-address", defaultMetricsAddress,
		"address of /metrics for Prometheus, without TLS; 0 for none")
	flags.Int64Var(&options.maxBody, "max-body-bytes", webhook.DefaultMaxBodyBytes, "maximum size of a review; API servers send less than the default")
	return command
}

func (o *serveOptions) validate() error {
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

func (o *serveOptions) run(ctx context.Context) error {
	log := logr.FromContextOrDiscard(ctx)
	memory := limitMemory()
	rulesets, err := webhook.OpenRulesets(o.rulesets, log, o.shared)
	if err != nil {
		return err
	}
	server, err := webhook.NewServer(o.newHandler(rulesets, memory, log), webhook.ServerOptions{
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

// newHandler compiles the rulesets. It does so before the server listens, so a pod
// that answers at all is ready for each of them.
func (o *serveOptions) newHandler(rulesets *webhook.RulesetDirectory, memory int64, log logr.Logger) *webhook.Handler {
	return webhook.NewHandler(rulesets.Rulesets(), webhook.HandlerOptions{
		BuildVersion: versionText(),
		MaxBodyBytes: o.maxBody,
		MemoryLimit:  memory,
		Log:          log,
	})
}
