// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/conversion-operator/conversion-operator/internal/test/node"
)

// processNode is the name of a node of processes, by its index.
func processNode(index int) string { return fmt.Sprintf("node%d", index+1) }

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
