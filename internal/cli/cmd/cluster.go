// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/operator/pages"
	"github.com/conversion-operator/conversion-operator/internal/operator/scheme"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify/live"
)

// clusterFlags are kubectl's flags for how to reach a cluster, for a command that
// reads objects without a namespace.
func clusterFlags(command *cobra.Command) *genericclioptions.ConfigFlags {
	config := newConfigFlags()
	config.Namespace = nil
	addClusterFlags(command, config)
	return config
}

// namespacedFlags are clusterFlags with a namespace, whose meaning the usage says.
func namespacedFlags(command *cobra.Command, usage string) *genericclioptions.ConfigFlags {
	config := newConfigFlags()
	addClusterFlags(command, config)
	command.Flags().Lookup("namespace").Usage = usage
	_ = command.RegisterFlagCompletionFunc("namespace", namesIn(config, namespaceKind)) // the flag is there
	return config
}

// newConfigFlags returns flags that are read at each use: a command may read several contexts.
func newConfigFlags() *genericclioptions.ConfigFlags { return genericclioptions.NewConfigFlags(false) }

func addClusterFlags(command *cobra.Command, config *genericclioptions.ConfigFlags) {
	// Discovery is small, and happens once: nothing is cached.
	config.CacheDir = nil
	config.AddFlags(command.Flags())
	_ = command.RegisterFlagCompletionFunc("context", contextsOf(config)) // the flag is there
}

// reach returns how to reach the API server.
func reach(config *genericclioptions.ConfigFlags) (*rest.Config, error) {
	found, err := config.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	pages.Bound(found)
	return found, nil
}

// connectToRead returns a reader of definitions and of custom resources. It sends nothing yet.
func connectToRead(config *genericclioptions.ConfigFlags) (*live.Cluster, error) {
	found, err := reach(config)
	if err != nil {
		return nil, err
	}
	return live.Connect(found)
}

// connect returns a client for policies and related objects. It sends nothing yet.
func connect(config *genericclioptions.ConfigFlags) (client.WithWatch, error) {
	found, err := reach(config)
	if err != nil {
		return nil, err
	}
	api, err := client.NewWithWatch(found, client.Options{Scheme: scheme.New()})
	if err != nil {
		return nil, fmt.Errorf("create a client: %w", err)
	}
	return api, nil
}
