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
)

// migrateOptions are the flags of the migrate command.
type migrateOptions struct {
	migration  migration.Options
	checkpoint types.NamespacedName
	kubeconfig string
}

func newMigrateCommand() *cobra.Command {
	var o migrateOptions
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Rewrite every stored object of one resource at its storage version",
		Long: `Rewrite every stored object of one resource at its storage version.

The manager starts this command in a Job. It keeps a record of the run in a
ConfigMap, and goes on from there when it is started again.

It exits with 0 when the run has ended and its record says how: also when
objects failed, or when the run was aborted because it cannot succeed. Another
exit code means that it is worth starting again.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.migration.Run, "run", "", "identity of the run; a record of another run is refused")
	flags.StringVar(&o.migration.Resource.Group, "group", "", "API group of the resource")
	flags.StringVar(&o.migration.Resource.Version, "version", "", "storage version of the resource")
	flags.StringVar(&o.migration.Resource.Resource, "resource", "", "plural name of the resource")
	flags.StringVar(&o.migration.Pin.Name, "crd", "", "name of the CustomResourceDefinition of the resource")
	flags.StringVar((*string)(&o.migration.Pin.UID), "crd-uid", "", "uid of the CustomResourceDefinition; the run is aborted when it is another")
	flags.Int64Var(&o.migration.Pin.Generation, "crd-generation", 0, "generation of the CustomResourceDefinition; the run is aborted when it is another")
	flags.StringVar(&o.checkpoint.Namespace, "namespace", "", "namespace of the checkpoint ConfigMap")
	flags.StringVar(&o.checkpoint.Name, "checkpoint", "", "name of the ConfigMap that keeps the record of the run; it must exist")
	// Twice the API server's request timeout, a minute: its tearDown in
	// k8s.io/apiextensions-apiserver pkg/apiserver/customresource_handler.go keeps
	// the old storage that long for the requests in flight.
	flags.DurationVar(&o.migration.Settle, "settle", 2*time.Minute, "time for writes at the old version to drain before the first object is listed")
	flags.IntVar(&o.migration.Concurrency, "concurrency", 8, "objects in flight")
	flags.Int64Var(&o.migration.PageSize, "page-size", 500, "objects listed at once")
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
	if o.migration.Pin.Generation < 1 {
		errs = append(errs, fmt.Errorf("--crd-generation is required and must be at least 1, is %d", o.migration.Pin.Generation))
	}
	if o.migration.Settle < 0 {
		errs = append(errs, fmt.Errorf("--settle must not be negative, is %s", o.migration.Settle))
	}
	if o.migration.Concurrency < 1 {
		errs = append(errs, fmt.Errorf("--concurrency must be at least 1, is %d", o.migration.Concurrency))
	}
	if o.migration.PageSize < 1 {
		errs = append(errs, fmt.Errorf("--page-size must be at least 1, is %d", o.migration.PageSize))
	}
	return errors.Join(errs...)
}

func (o *migrateOptions) run(ctx context.Context) error {
	config, err := o.restConfig()
	if err != nil {
		return err
	}
	cluster, err := migration.Connect(config, o.migration.Resource, o.migration.Pin.Name, o.checkpoint)
	if err != nil {
		return err
	}
	engine := migration.Engine{
		Options:     o.migration,
		Lister:      cluster,
		Patcher:     cluster,
		Definition:  cluster,
		Discovery:   cluster,
		Checkpoints: cluster,
		Clock:       migration.SystemClock{},
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
