// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"errors"
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

// The processes of a cluster run the executable that started it, under these names.
const (
	self           = "/proc/self/exe"
	supervisorName = "localcluster-supervisor"
	enterName      = "localcluster-enter"
	insideName     = "localcluster-inside"
	nodesName      = "localcluster-nodes"
)

var errNoRoles = errors.New("this program cannot start clusters: call localcluster.PlayRole first thing in main or TestMain")

// canPlayRoles is set by PlayRole. Without that call, a supervisor would run the program's main
// instead, and start more supervisors.
var canPlayRoles bool

// PlayRole must be the first call in main, or TestMain, of any program that calls Up or Command. In
// the program itself it does nothing. In processes that this package starts from the same
// executable it does their work and does not return.
func PlayRole() {
	canPlayRoles = true
	roles := map[string]func(args []string) int{
		supervisorName: func(args []string) int { return supervise(args[0]) },
		nodesName:      func(args []string) int { return runNodes(args[0]) },
		enterName:      enter,
		insideName:     becomeProgram,
	}
	if role, ours := roles[os.Args[0]]; ours && len(os.Args) > 1 {
		os.Exit(role(os.Args[1:]))
	}
}
