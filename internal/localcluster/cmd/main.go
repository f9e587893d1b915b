// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command localcluster runs the clusters of package localcluster from a shell or the Makefile.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/conversion-operator/conversion-operator/internal/localcluster"
)

func main() {
	localcluster.PlayRole()
	if err := rootCommand().Execute(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "localcluster:", err)
		os.Exit(1)
	}
}

const longHelp = `Real Kubernetes clusters on this machine, built from Go modules.

A full node (root, Linux, runc and iproute2) runs pods, in network, mount and
PID namespaces of its own. The control plane alone needs no root.

Environment:
  LOCALCLUSTER_CACHE  directory of binaries and clusters
                      (default conversion-operator/localcluster in the user's cache)
  KUBERNETES_VERSION  another version of Kubernetes, such as v1.36.3, a supported
                      minor version, or oldest for ` + localcluster.OldestKubernetesVersion + `
                      (default ` + localcluster.DefaultKubernetesVersion + `)

Run it inside a checkout of conversion-operator: the sources are pinned there.`

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "localcluster",
		Short:         "Run a local Kubernetes cluster",
		Long:          longHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	o := &localcluster.Options{Progress: os.Stderr}
	root.PersistentFlags().StringVar(&o.Name, "name", localcluster.DefaultName, "name of the cluster; clusters with different names can run at the same time")
	root.AddCommand(buildCommand(o), assetsCommand(o), upCommand(o), execCommand(o), loadCommand(o), kubeconfigCommand(o), downCommand(o))
	return root
}

// interruptible returns a context that the first interrupt cancels; a second one kills the process.
func interruptible() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
}

func controlPlaneFlag(cmd *cobra.Command, o *localcluster.Options) {
	cmd.Flags().BoolVar(&o.ControlPlaneOnly, "control-plane", false, "etcd, kube-apiserver and kube-controller-manager only: no root, no pods")
}
