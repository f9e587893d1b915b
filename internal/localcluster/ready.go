// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

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
			return fmt.Errorf("while waiting for %s (last answer: %w): %w", what, err, context.Cause(ctx))
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
func checkNode(node *corev1.Node) error {
	for _, c := range node.Status.Conditions {
		if c.Type != corev1.NodeReady {
			continue
		}
		if c.Status != corev1.ConditionTrue {
			return errors.New(c.Message)
		}
		if len(node.Spec.Taints) > 0 {
			return fmt.Errorf("the node has the taint %s", node.Spec.Taints[0].Key)
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
