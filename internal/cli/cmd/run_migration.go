// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/conversion-operator/conversion-operator/internal/migration"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/operator/tracing"
	"github.com/conversion-operator/conversion-operator/internal/process"
)

// runMigrationOptions are the flags of the run-migration command.
type runMigrationOptions struct {
	spec       string
	kubeconfig string
	metrics    string
}

func newRunMigrationCommand() *cobra.Command {
	var o runMigrationOptions
	cmd := &cobra.Command{
		Use:   contract.Command,
		Short: "Run the migration of a policy, in a pod",
		Long: `Run the migration of a policy, in a pod: rewrite every stored object of one resource
at its storage version. To migrate from a shell, use conversion-operator migrate.

The manager starts this command in a Job, with a specification of the run. The
command keeps a record of the run in a ConfigMap, and continues from that record
when it is started again.

It exits with 0 when the run has ended and its record has the result, even if
objects failed, or if the run was aborted because it cannot succeed. Any other
exit code means that the manager should start it again.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			spec, err := contract.ParseSpec(o.spec)
			if err != nil {
				return err
			}
			return o.run(cmd.Context(), &spec)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.spec, contract.SpecFlag, "", "specification of the run as JSON, which the manager writes")
	_ = cmd.MarkFlagRequired(contract.SpecFlag) // the flag is there
	flags.StringVar(&o.metrics, "metrics-bind-address", process.DefaultMetricsAddress, "address of /metrics for Prometheus, without TLS; 0 for none")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "path to a kubeconfig; default $KUBECONFIG, else the pod's own ServiceAccount")
	return cmd
}

func (o *runMigrationOptions) run(ctx context.Context, spec *contract.Spec) error {
	process.LimitMemory()
	collectEarly()
	endpoint := cmp.Or(spec.TracingEndpoint, tracing.Endpoint(os.Getenv))
	traces, err := tracing.Start(ctx, tracing.Options{Endpoint: endpoint, Service: "conversion-operator-migrate", Version: versionText()})
	if err != nil {
		return err
	}
	defer traces.Stop(ctx)
	config, err := o.restConfig()
	if err != nil {
		return err
	}
	metrics := migration.NewMetrics(spec.Pin.Name, versionText())
	defer startMetricsServer(ctx, o.metrics, metrics.Handler())()
	engine, err := migration.NewEngine(ctx, config, spec, traces.Tracer, metrics)
	if err != nil {
		return err
	}
	_, err = engine.Run(ctx)
	return err
}

func (o *runMigrationOptions) restConfig() (*rest.Config, error) {
	kubeconfig := cmp.Or(o.kubeconfig, os.Getenv(clientcmd.RecommendedConfigPathEnvVar))
	if kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", kubeconfig)
}

// readTimeout is how long a scraper may take to send its request.
const readTimeout = 10 * time.Second

// startMetricsServer serves metrics at the address (0 for none) until the caller calls the returned
// function. Conversions do not depend on metrics, so it only logs errors.
func startMetricsServer(ctx context.Context, address string, metrics http.Handler) (stop func()) {
	log := logr.FromContextOrDiscard(ctx)
	if address == "" || address == "0" {
		return func() {}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		log.Error(err, "Metrics are not served", "address", address)
		return func() {}
	}
	log.Info("Serving metrics", "address", listener.Addr().String())
	server := &http.Server{Handler: metrics, ReadHeaderTimeout: readTimeout}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error(err, "Metrics server stopped")
		}
	}()
	return func() {
		_ = server.Close() // do not wait for a scrape
		<-ended
	}
}
