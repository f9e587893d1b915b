// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"

	"github.com/conversion-operator/conversion-operator/internal/test/node"
)

// Cluster is an API server with nodes that run pods as processes.
type Cluster struct {
	*Server
	Nodes *node.Cluster
	// Dir has the kubeconfig of an administrator, the logs and the volumes.
	Dir string
}

// StartCluster starts an API server with kube-controller-manager, kube-scheduler and the named nodes.
// images maps images to programs; flags are additional ones of kube-controller-manager. The caller
// stops it with Stop.
func StartCluster(ctx context.Context, options Options, images map[string]string, nodes []string, flags ...string) (*Cluster, error) {
	dir, err := os.MkdirTemp("", "nodes-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{Dir: dir}
	if err := c.start(ctx, options, images, nodes, flags); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, options Options, images map[string]string, nodes, flags []string) error {
	if err := node.WriteEgress(c.Dir); err != nil {
		return err
	}
	arguments := map[string]string{
		"egress-selector-config-file": node.EgressFile(c.Dir), "endpoint-reconciler-type": "none",
		// envtest disables the one for ServiceAccounts, because it has no controllers.
		"disable-admission-plugins": ""}
	maps.Copy(arguments, options.Arguments)
	options.Arguments = arguments
	var err error
	if c.Server, err = Start(options); err != nil {
		return err
	}
	if c.Nodes, err = node.Start(ctx, node.Options{Config: c.Kubeconfig, Images: images, Dir: c.Dir}); err != nil {
		return err
	}
	kubeconfig, ca := filepath.Join(c.Dir, "kubeconfig"), filepath.Join(c.Dir, "ca.crt")
	if err := errors.Join(os.WriteFile(kubeconfig, c.KubeConfig, 0o600), os.WriteFile(ca, c.Kubeconfig.CAData, 0o600)); err != nil {
		return err
	}
	common := []string{"--kubeconfig=" + kubeconfig, "--leader-elect=false", "--secure-port=0", "--kube-api-qps=500", "--kube-api-burst=1000"}
	binaries := os.Getenv("KUBEBUILDER_ASSETS")
	if err := c.Nodes.Run(filepath.Join(binaries, "kube-scheduler"), common...); err != nil {
		return err
	}
	manager := append(append(common, "--use-service-account-credentials", "--root-ca-file="+ca, "--controllers="+node.Controllers), flags...)
	if err := c.Nodes.Run(filepath.Join(binaries, "kube-controller-manager"), manager...); err != nil {
		return err
	}
	for _, name := range nodes {
		if _, err := c.Nodes.Add(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// Stop ends all processes.
func (c *Cluster) Stop() error {
	var errs []error
	if c.Nodes != nil {
		errs = append(errs, c.Nodes.Close())
	}
	if c.Server != nil {
		errs = append(errs, c.Server.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(c.Dir))...)
}
