// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
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
	server string
	node   string // the name of the node that it waits for
	token  string
	http   *http.Client
}

// newAPIClient reads the credentials of the cluster.
func newAPIClient(s spec) (apiClient, error) {
	ca, err := os.ReadFile(s.home("pki", "ca.crt"))
	if err != nil {
		return apiClient{}, err
	}
	tokens, err := os.ReadFile(s.home("pki", "tokens.csv"))
	if err != nil {
		return apiClient{}, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return apiClient{}, fmt.Errorf("%s holds no certificate", s.home("pki", "ca.crt"))
	}
	token, _, _ := strings.Cut(string(tokens), ",")
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}}
	return apiClient{s.server(), s.nodeName(), token, &http.Client{Transport: transport, Timeout: 5 * time.Second}}, nil
}

// get reads a path. Every status but 200 is an error.
func (c apiClient) get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.server+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", path, response.Status)
	}
	return body, nil
}

func (c apiClient) ready(ctx context.Context) error {
	_, err := c.get(ctx, "/readyz")
	return err
}

// serviceAccountReady: the API server rejects pods in a namespace without its default
// ServiceAccount.
func (c apiClient) serviceAccountReady(ctx context.Context) error {
	_, err := c.get(ctx, "/api/v1/namespaces/default/serviceaccounts/default")
	return err
}

func (c apiClient) nodeReady(ctx context.Context) error {
	body, err := c.get(ctx, "/api/v1/nodes/"+c.node)
	if err != nil {
		return err
	}
	return checkNode(body)
}

// checkNode returns why a node is not ready: its condition, or the taint that is removed a little
// later and until then repels pods.
func checkNode(body []byte) error {
	var node struct {
		Spec   struct{ Taints []struct{ Key string } }
		Status struct {
			Conditions []struct{ Type, Status, Message string }
		}
	}
	if err := json.Unmarshal(body, &node); err != nil {
		return err
	}
	for _, c := range node.Status.Conditions {
		if c.Type != "Ready" {
			continue
		}
		if c.Status != "True" {
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
