// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster starts a control plane with the operator on nodes of processes, for suites that
// measure it: package internal/test/node. All processes are children of this one, so that package
// measure can read what they use. There is no image, no container and no limit of processors: times of
// rollouts cannot be compared with those of a cluster, and nothing else depends on it.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// Programs, by the names that measure.UsageOf takes.
const (
	Manager   = "conversion-operator manager"
	Converter = "converter"
	APIServer = "kube-apiserver"
	Etcd      = "etcd"
)

// image is that of config/default.
const image = "localhost/conversion-operator:dev"

// Quota is a flag of etcd for more objects than fit into its default of 2 GiB.
var Quota = map[string]string{"quota-backend-bytes": fmt.Sprint(8 << 30)}

// Binary returns a program that make has built.
func Binary(name string) (string, error) {
	root, err := testenv.Root()
	return filepath.Join(root, "bin", name), err
}

// Start starts a control plane with the binaries in KUBEBUILDER_ASSETS, and installs the operator. flags are
// additional ones of kube-controller-manager. kubectl
// and other programs find the cluster in the environment.
func Start(ctx context.Context, flags ...string) (*testenv.Cluster, error) {
	binary, err := Binary("conversion-operator")
	if err != nil {
		return nil, err
	}
	c, err := testenv.StartCluster(ctx, testenv.Options{EtcdArguments: Quota}, map[string]string{image: binary}, []string{"a", "b", "c"}, flags...)
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{
		"KUBECONFIG":               filepath.Join(c.Dir, "kubeconfig"),
		"PATH":                     os.Getenv("KUBEBUILDER_ASSETS") + string(os.PathListSeparator) + os.Getenv("PATH"),
		"E2E_IMAGE":                image,
		scenarios.EndpointVariable: string(c.Etcd),
	} {
		err = errors.Join(err, os.Setenv(name, value))
	}
	if err == nil {
		err = scenarios.Install(ctx, scenarios.NewTeller(io.Discard, filepath.Dir(filepath.Dir(binary))), scenarios.PropagationDelay)
	}
	if err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}
