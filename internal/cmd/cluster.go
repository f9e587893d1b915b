// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/scheme"
)

// clusterFlags are kubectl's flags for how to reach a cluster, for a command that
// reads objects without a namespace.
func clusterFlags(command *cobra.Command) *genericclioptions.ConfigFlags {
	config := genericclioptions.NewConfigFlags(true)
	config.Namespace = nil
	addClusterFlags(command, config)
	return config
}

// namespacedFlags are clusterFlags with a namespace, whose meaning the usage says.
func namespacedFlags(command *cobra.Command, usage string) *genericclioptions.ConfigFlags {
	config := genericclioptions.NewConfigFlags(true)
	addClusterFlags(command, config)
	command.Flags().Lookup("namespace").Usage = usage
	_ = command.RegisterFlagCompletionFunc("namespace", namesIn(config, namespaceKind)) // the flag is there
	return config
}

func addClusterFlags(command *cobra.Command, config *genericclioptions.ConfigFlags) {
	// Discovery is small, and happens once: nothing is cached.
	config.CacheDir = nil
	config.AddFlags(command.Flags())
	_ = command.RegisterFlagCompletionFunc("context", contextsOf(config)) // the flag is there
}

// connect returns a client for policies and related objects. It sends nothing yet.
func connect(config *genericclioptions.ConfigFlags) (client.WithWatch, error) {
	found, err := config.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	api, err := client.NewWithWatch(found, client.Options{Scheme: scheme.New()})
	if err != nil {
		return nil, fmt.Errorf("create a client: %w", err)
	}
	return api, nil
}
