//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/conversion-operator/conversion-operator/internal/localcluster"
	"github.com/conversion-operator/conversion-operator/internal/scheme"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// system is the operator's namespace.
const system = "conversion-system"

// The cluster and its clients.
var (
	teller  *scenarios.Teller
	fleet   *scenarios.Fleet
	cluster client.WithWatch
)

// TestMain installs the operator once, as a user would.
func TestMain(m *testing.M) {
	localcluster.PlayRole()
	if err := connect(); err != nil {
		fmt.Fprintln(os.Stderr, "end-to-end tests need a cluster, see make test-e2e:", err)
		os.Exit(1)
	}
	if err := scenarios.Install(context.Background(), teller); err != nil {
		fmt.Fprintln(os.Stderr, "the operator could not be installed:", err)
		os.Exit(1)
	}
	code := m.Run()
	if err := checkRights(); err != nil {
		fmt.Fprintln(os.Stderr, "the operator's rights are not what it needs:\n"+err.Error())
		code = 1
	}
	if err := checkLeading(); err != nil {
		fmt.Fprintln(os.Stderr, "more than one manager acted at a time:\n"+err.Error())
		code = 1
	}
	os.Exit(code)
}

func connect() error {
	root, err := scenarios.Root()
	if err != nil {
		return err
	}
	kubeconfig, err := config.GetConfig()
	if err != nil {
		return err
	}
	kubeconfig.QPS = -1
	if cluster, err = client.NewWithWatch(kubeconfig, client.Options{Scheme: scheme.New()}); err != nil {
		return err
	}
	teller = scenarios.NewTeller(os.Stdout, root)
	fleet, err = scenarios.NewFleet(kubeconfig)
	return err
}

// pods lists the operator's pods of a component.
func pods(ctx context.Context, t *testing.T, labels client.MatchingLabels) []corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	expect.NoError(t, cluster.List(ctx, list, client.InNamespace(system), labels))
	return list.Items
}
