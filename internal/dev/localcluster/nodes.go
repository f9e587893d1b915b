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
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/conversion-operator/conversion-operator/internal/test/node"
)

// processNode is the name of a node of processes, by its index.
func processNode(index int) string { return fmt.Sprintf("node%d", index+1) }

// podPorts are those at which the operator's pods and the kubelet listen, each at its own address.
var podPorts = []int{8080, 8081, 8443, 9443, 10250}

// checkPorts returns an error if another program listens at one of these ports at all addresses.
func checkPorts() error {
	for _, port := range podPorts {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.255.0.1:%d", port)) //nolint:noctx // on loopback nothing is waited for
		if err != nil {
			return fmt.Errorf("another program listens at port %d of all addresses, which nodes of processes need: stop it, or use containers, as root (make: NODE=containers)", port)
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

// pollInterval is the time between two readiness checks of a component. Components that are
// starting have nothing to watch yet.
const pollInterval = 50 * time.Millisecond

// poll calls check until it succeeds. When the context ends, it returns the last error of check and
// the cause of the context.
func poll(ctx context.Context, what string, check func(context.Context) error) error {
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			cause := context.Cause(ctx)
			if errors.Is(err, cause) { // the end of the context ended the check
				return fmt.Errorf("while waiting for %s: %w", what, cause)
			}
			return fmt.Errorf("while waiting for %s (last answer: %w): %w", what, err, cause)
		case <-time.After(pollInterval):
		}
	}
}

// apiClient sends requests to an API server as its administrator.
type apiClient struct {
	kubernetes.Interface
}

// newAPIClient reads the credentials of the cluster.
func newAPIClient(s spec) (apiClient, error) {
	config, err := clientcmd.BuildConfigFromFlags("", s.home("kubeconfig"))
	if err != nil {
		return apiClient{}, err
	}
	config.Timeout, config.QPS = 5*time.Second, -1 // poll limits the rate
	client, err := kubernetes.NewForConfig(config)
	return apiClient{client}, err
}

func (c apiClient) ready(ctx context.Context) error {
	return c.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

// serviceAccountReady: the API server rejects pods in a namespace without its default
// ServiceAccount.
func (c apiClient) serviceAccountReady(ctx context.Context) error {
	_, err := c.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	return err
}

// nodeReady returns a check that a node is ready.
func (c apiClient) nodeReady(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		node, err := c.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return checkNode(node)
	}
}

// checkNode returns why a node is not ready: its condition, or the taint that is removed a little
// later and until then repels pods.
func checkNode(found *corev1.Node) error {
	for _, c := range found.Status.Conditions {
		if c.Type != corev1.NodeReady {
			continue
		}
		if c.Status != corev1.ConditionTrue {
			return errors.New(c.Message)
		}
		if len(found.Spec.Taints) > 0 {
			return fmt.Errorf("the node has the taint %s", found.Spec.Taints[0].Key)
		}
		return nil
	}
	return errors.New("the node has no condition Ready yet")
}

// listening returns a check that a Unix socket accepts connections.
func listening(path string) func(context.Context) error {
	return func(ctx context.Context) error {
		connection, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
		if err != nil {
			return err
		}
		return connection.Close()
	}
}
