// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/conversion-operator/conversion-operator/internal/migration"
	"github.com/conversion-operator/conversion-operator/internal/tracing"
)

// migrateOptions are the flags of the migrate command.
type migrateOptions struct {
	migration  migration.Options
	checkpoint types.NamespacedName
	kubeconfig string
	pace       string
	verify     string
	fallback   []string
	retry      string
	ruleset    string
	tracing    string
	metrics    string
}

func newMigrateCommand() *cobra.Command {
	var o migrateOptions
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Rewrite every stored object of one resource at its storage version",
		Long: `Rewrite every stored object of one resource at its storage version.

The manager starts this command in a Job. The command keeps a record of the run in
a ConfigMap, and continues from there when it starts again.

It exits with 0 when the run has ended and its record has the result, even if
objects failed, or if the run was aborted because it cannot succeed. Any other
exit code means that the manager should start it again.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.migration.Pace, o.migration.Verify = migration.Pace(o.pace), migration.Verify(o.verify)
			for _, fallback := range o.fallback {
				o.migration.Fallback = append(o.migration.Fallback, migration.Fallback(fallback))
			}
			if err := o.validate(); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.migration.Run, "run", "", "identity of the run; the command refuses the record of another run")
	flags.StringVar(&o.migration.Resource.Group, "group", "", "API group of the resource")
	flags.StringVar(&o.migration.Resource.Version, "version", "", "storage version of the resource")
	flags.StringVar(&o.migration.Resource.Resource, "resource", "", "plural name of the resource")
	flags.StringVar(&o.migration.Pin.Name, "crd", "", "name of the CustomResourceDefinition of the resource")
	flags.StringVar((*string)(&o.migration.Pin.UID), "crd-uid", "", "uid of the CustomResourceDefinition; the run aborts if it differs")
	flags.Int64Var(&o.migration.Pin.Generation, "crd-generation", 0, "generation of the CustomResourceDefinition; the run aborts if it differs")
	flags.StringVar(&o.checkpoint.Namespace, "namespace", "", "namespace of the checkpoint ConfigMap")
	flags.StringVar(&o.checkpoint.Name, "checkpoint", "", "name of the ConfigMap with the record of the run; it must exist")
	// Twice the API server's request timeout, a minute: its tearDown in
	// k8s.io/apiextensions-apiserver pkg/apiserver/customresource_handler.go keeps
	// the old storage that long for the requests in flight.
	flags.DurationVar(&o.migration.Settle, "settle", 2*time.Minute, "propagation delay: time for writes at the old version to finish before the run lists the first object")
	flags.IntVar(&o.migration.Concurrency, "concurrency", 32, "maximum number of objects in flight; the run adapts to the API server below it")
	flags.StringVar(&o.pace, "pace", string(migration.PaceGentle), "Gentle limits the effect on other clients; Fast finishes as soon as possible")
	flags.IntVar(&o.migration.MaxWritesPerSecond, "max-writes-per-second", 0, "maximum number of patches per second, including failed ones; 0 means no limit")
	flags.IntVar(&o.migration.Preflight, "preflight", 20, "number of objects to try in a dry run before the first write; 0 means none")
	flags.StringVar(&o.verify, "verify", string(migration.VerifySample), "verification of rewritten objects: None, Sample, or Full")
	flags.StringSliceVar(&o.fallback, "fallback", nil, "paths to try, in this order, for an object that an API server refuses at the storage version: Status, OldVersion")
	flags.StringSliceVar(&o.migration.OldVersions, "old-versions", nil, "other served versions, for the fallback OldVersion and to find objects that lists cannot return")
	flags.Int64Var(&o.migration.PageSize, "page-size", 500, "objects to list in one request")
	flags.StringVar(&o.retry, "retry", "", "name of the ConfigMap of an earlier run: migrate only its failed objects, or all objects if the definition has changed since")
	flags.StringVar(&o.ruleset, "ruleset", "", "name of the ConfigMap of the ruleset: the run counts preserved data, and moves values into fields that have a place for them; empty to do neither")
	tracingFlag(flags, &o.tracing)
	flags.StringVar(&o.metrics, "metrics-bind-address", defaultMetricsAddress, "address of /metrics for Prometheus, without TLS; 0 for none")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "path to a kubeconfig; empty means the pod's own ServiceAccount")
	return cmd
}

func (o *migrateOptions) validate() error {
	required := []struct{ flag, value string }{
		{"run", o.migration.Run},
		{"group", o.migration.Resource.Group},
		{"version", o.migration.Resource.Version},
		{"resource", o.migration.Resource.Resource},
		{"crd", o.migration.Pin.Name},
		{"crd-uid", string(o.migration.Pin.UID)},
		{"namespace", o.checkpoint.Namespace},
		{"checkpoint", o.checkpoint.Name},
	}
	var errs []error
	for _, r := range required {
		if r.value == "" {
			errs = append(errs, fmt.Errorf("--%s is required", r.flag))
		}
	}
	errs = append(errs, o.validateNumbers()...)
	return errors.Join(append(errs, o.validateChoices()...)...)
}

func (o *migrateOptions) validateNumbers() []error {
	m := o.migration
	numbers := []struct {
		ok   bool
		want string
		is   any
	}{
		{m.Pin.Generation >= 1, "--crd-generation is required and must be at least 1", m.Pin.Generation},
		{m.Settle >= 0, "--settle must not be negative", m.Settle},
		{m.Concurrency >= 1, "--concurrency must be at least 1", m.Concurrency},
		{m.MaxWritesPerSecond >= 0, "--max-writes-per-second must not be negative", m.MaxWritesPerSecond},
		{m.Preflight >= 0, "--preflight must not be negative", m.Preflight},
		{m.PageSize >= 1, "--page-size must be at least 1", m.PageSize},
	}
	var errs []error
	for _, n := range numbers {
		if !n.ok {
			errs = append(errs, fmt.Errorf("%s, is %v", n.want, n.is))
		}
	}
	return errs
}

func (o *migrateOptions) validateChoices() []error {
	var errs []error
	switch o.migration.Pace {
	case migration.PaceGentle, migration.PaceFast:
	default:
		errs = append(errs, fmt.Errorf("--pace must be Gentle or Fast, is %q", o.pace))
	}
	switch o.migration.Verify {
	case migration.VerifyNone, migration.VerifySample, migration.VerifyFull:
	default:
		errs = append(errs, fmt.Errorf("--verify must be None, Sample or Full, is %q", o.verify))
	}
	for _, fallback := range o.migration.Fallback {
		switch fallback {
		case migration.FallbackStatus:
		case migration.FallbackOldVersion:
			if len(o.migration.OldVersions) == 0 {
				errs = append(errs, errors.New("--fallback OldVersion needs --old-versions"))
			}
		default:
			errs = append(errs, fmt.Errorf("--fallback must be Status or OldVersion, is %q", fallback))
		}
	}
	return errs
}

func (o *migrateOptions) run(ctx context.Context) error {
	limitMemory()
	collectEarly()
	traces, err := tracing.Start(ctx, tracing.Options{Endpoint: o.tracing, Service: "conversion-operator-migrate", Version: versionText()})
	if err != nil {
		return err
	}
	defer traces.Stop(ctx)
	config, err := o.restConfig()
	if err != nil {
		return err
	}
	cluster, err := migration.Connect(config, o.migration.Resource, o.migration.Pin.Name, o.checkpoint)
	if err != nil {
		return err
	}
	servers, err := cluster.APIServers()
	if err != nil {
		return err
	}
	metrics := migration.NewMetrics(o.migration.Pin.Name, versionText())
	defer tellPrometheus(ctx, o.metrics, metrics.Handler())()
	engine := migration.Engine{
		Options:     o.migration,
		Lister:      cluster,
		Patcher:     metrics.Patcher(cluster),
		Definition:  cluster,
		Discovery:   cluster,
		Servers:     servers,
		Checkpoints: metrics.Checkpoints(cluster),
		Clock:       migration.SystemClock{},
		Tracer:      traces.Tracer,
		Metrics:     metrics,
	}
	if o.ruleset != "" {
		if engine.Inventory, err = migration.ReadInventory(ctx, cluster, o.ruleset, o.migration.Resource.Version, engine.Clock); err != nil {
			return err
		}
	}
	if o.retry != "" {
		engine.Earlier = cluster.Earlier(o.retry)
	}
	_, err = engine.Run(ctx)
	return err
}

func (o *migrateOptions) restConfig() (*rest.Config, error) {
	if o.kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", o.kubeconfig)
}
