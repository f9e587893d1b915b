// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command localcluster runs the clusters of package localcluster from a shell or the Makefile.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/conversion-operator/conversion-operator/internal/dev/localcluster"
)

func main() {
	localcluster.PlayRole()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second interrupt ends the program
	if err := rootCommand().ExecuteContext(ctx); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "localcluster:", cmp.Or(ctx.Err(), err))
		os.Exit(1)
	}
}

const longHelp = `Real Kubernetes clusters on this machine, built from Go modules.

A full node (root, Linux, runc and iproute2) runs pods, in network, mount and
PID namespaces of its own. Nodes that run pods as processes need no root.

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

func buildCommand(o *localcluster.Options) *cobra.Command {
	return &cobra.Command{
		Use:   "build",
		Short: "Build the binaries into the cache",
		Long: `Build the binaries into the cache.

The first build compiles Kubernetes, which takes minutes. Later builds compile
only what a changed go.mod affects. Concurrent builds share the work.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := localcluster.Build(cmd.Context(), *o)
			return err
		},
	}
}

func assetsCommand(o *localcluster.Options) *cobra.Command {
	return &cobra.Command{
		Use:   "assets",
		Short: "Print the directory of the binaries for nodes of processes, built if absent",
		Example: `  # Tests with envtest
  KUBEBUILDER_ASSETS=$(localcluster assets) go test ./...`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.ProcessNodes = 1
			dir, err := localcluster.Build(cmd.Context(), *o)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), dir)
			return err
		},
	}
}

func upCommand(o *localcluster.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a cluster and wait until it is ready",
		Long: `Start a cluster and wait until it is ready.

Missing binaries are built first. The cluster runs until "down", or until its
supervisor process ends or, without --restart, any of its components. If the
start fails, the log of the failed component is shown.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := localcluster.Up(cmd.Context(), *o)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "kubeconfig: %s\nlogs:       %s\nsupervisor: process %d\n",
				c.Kubeconfig(), c.LogDir(), c.SupervisorPID())
			return err
		},
	}
	cmd.Flags().IntVar(&o.ProcessNodes, "process-nodes", 0, "number of nodes that run pods as processes: no root, no containers")
	cmd.Flags().StringToStringVar(&o.Images, "image", nil, "IMAGE=PROGRAM: the program that nodes of processes run for an image")
	cmd.Flags().BoolVar(&o.Restart, "restart", false, "restart a component that ends, instead of stopping the cluster")
	cmd.Flags().StringVar(&o.AuditPolicy, "audit-policy", "", "file of an audit policy; the API server then writes audit.log beside the other logs")
	return cmd
}

func execCommand(o *localcluster.Options) *cobra.Command {
	return &cobra.Command{
		Use:   "exec [--name NAME] -- COMMAND [ARG...]",
		Short: "Run a command inside the cluster",
		Long: `Run a command inside the cluster's namespaces, with KUBECONFIG set, kubectl on
PATH and etcd's URL in LOCALCLUSTER_ETCD. Files are the host's, except /run,
/var/log, /var/lib/cni and /var/lib/kubelet. Input, output, signals and the exit
code are the command's own. The command dies with the cluster.`,
		Example: `  localcluster exec -- kubectl get pods -A`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := localcluster.Find(*o)
			if err != nil {
				return err
			}
			// No context: the command replaces this process, and handles interrupts itself.
			command := c.Command(context.Background(), args[0], args[1:]...)
			if command.Err != nil {
				return command.Err
			}
			return syscall.Exec(command.Path, command.Args, command.Env)
		},
	}
}

func loadCommand(o *localcluster.Options) *cobra.Command {
	return &cobra.Command{
		Use:   "load IMAGE.tar",
		Short: "Load the images of an OCI or docker archive into the node",
		Long: `Load the images of an uncompressed OCI or docker archive into the node. Names in
an OCI archive need a registry, such as localhost; pods that use a loaded image
need imagePullPolicy Never or IfNotPresent.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := localcluster.Find(*o)
			if err != nil {
				return err
			}
			said, err := c.Load(cmd.Context(), args[0])
			if err == nil {
				_, err = fmt.Fprint(cmd.OutOrStdout(), said)
			}
			return err
		},
	}
}

func kubeconfigCommand(o *localcluster.Options) *cobra.Command {
	return &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the path of the administrator's kubeconfig",
		Long: `Print the path of the administrator's kubeconfig. A full node has its own
network, so its kubeconfig works only inside: see exec.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := localcluster.Find(*o)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), c.Kubeconfig())
			return err
		},
	}
}

func downCommand(o *localcluster.Options) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Stop a cluster and remove its files",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return localcluster.Down(cmd.Context(), *o)
		},
	}
}
