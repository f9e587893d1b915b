// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/conversion-operator/conversion-operator/internal/test/node"
)

// processNode is the name of a node of processes, by its index.
func processNode(index int) string { return fmt.Sprintf("node%d", index+1) }

// podPorts are those at which the operator's pods listen, each at its own address.
var podPorts = []int{8080, 8081, 8443, 9443}

// checkPorts returns an error if another program listens at one of these ports at all addresses.
func checkPorts() error {
	for _, port := range podPorts {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.255.0.1:%d", port)) //nolint:noctx // on loopback nothing is waited for
		if err != nil {
			return fmt.Errorf("another program listens at port %d of all addresses, which pods need: stop it, or use nodes of containers", port)
		}
		if err := listener.Close(); err != nil {
			return err
		}
	}
	return nil
}

// runNodes runs the nodes of processes until a signal. Its pods die with it.
func runNodes(dir string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := serveNodes(ctx, dir); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func serveNodes(ctx context.Context, dir string) error {
	s, err := readSpec(dir)
	if err != nil {
		return err
	}
	ctrl.SetLogger(klog.Background())
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfigFile(dir))
	if err != nil {
		return err
	}
	cluster, err := node.Start(ctx, node.Options{Config: config, Images: s.Images, Dir: s.home("processes"), Log: klog.Background()})
	if err != nil {
		return err
	}
	defer func() { _ = cluster.Close() }() // all of it ends with this process
	for index := range s.ProcessNodes {
		if _, err := cluster.Add(ctx, processNode(index)); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}
