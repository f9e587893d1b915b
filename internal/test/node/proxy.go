// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// EgressFile is the value of --egress-selector-config-file for the API server of nodes with this
// directory.
func EgressFile(dir string) string { return filepath.Join(dir, "egress.yaml") }

// WriteEgress writes that file: the API server connects to Services and nodes through a proxy.
func WriteEgress(dir string) error {
	text := fmt.Sprintf(`apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      uds:
        udsName: %q
`, socketOf(dir))
	return os.WriteFile(EgressFile(dir), []byte(text), 0o600)
}

// Controllers is the value of --controllers for kube-controller-manager: the nodes write
// EndpointSlices themselves, because it cannot write those with loopback addresses.
const Controllers = "*,-endpoints-controller,-endpointslice-controller"

func socketOf(dir string) string { return filepath.Join(dir, "proxy.sock") }

// proxy serves connections of the API server until ctx ends.
func (c *Cluster) proxy(ctx context.Context) {
	for {
		connection, err := c.socket.Accept()
		if err != nil {
			if ctx.Err() == nil {
				c.Log.Error(err, "The proxy of the API server ends")
			}
			return
		}
		go c.tunnel(ctx, connection)
	}
}

// tunnel connects the API server with what it asks for.
func (c *Cluster) tunnel(ctx context.Context, connection net.Conn) {
	defer func() { _ = connection.Close() }()
	defer context.AfterFunc(ctx, func() { _ = connection.Close() })()
	request, err := http.ReadRequest(bufio.NewReader(connection))
	if err != nil {
		return
	}
	host, port, _ := net.SplitHostPort(request.Host)
	if port == strconv.Itoa(kubeletPort) && c.isNode(host) {
		host = c.kubeletHost()
	}
	target, err := c.dial(ctx, host, port)
	if err != nil {
		_, _ = fmt.Fprintf(connection, "HTTP/1.1 503 %s\r\n\r\n", strings.ReplaceAll(err.Error(), "\n", " ")) // it may be gone
		return
	}
	defer func() { _ = target.Close() }()
	if _, err := io.WriteString(connection, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{connection, target}, {target, connection}} {
		go func() {
			_, _ = io.Copy(way[1], way[0]) // its end is all that matters
			done <- struct{}{}
		}()
	}
	<-done
}

// dial connects to a ready pod of a Service, as kube-proxy does, or to any other address.
func (c *Cluster) dial(ctx context.Context, host, port string) (net.Conn, error) {
	address := net.JoinHostPort(host, port)
	number, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		return nil, err
	}
	service, addresses, err := c.endpointsOf(ctx, host, int32(number))
	switch {
	case err != nil:
		return nil, err
	case len(addresses) > 0:
		address = addresses[rand.IntN(len(addresses))] //nolint:gosec // any of them
	case service:
		return nil, fmt.Errorf("dial tcp %s: connect: %w", address, syscall.ECONNREFUSED)
	}
	return (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp", address)
}

// isNode reports whether a host is a node. API servers prefer its name.
func (c *Cluster) isNode(host string) bool {
	for _, n := range c.all() {
		if host == n.Name || host == n.ip() {
			return true
		}
	}
	return false
}

// kubeletPort is the port at which API servers reach the kubelet of a node.
const kubeletPort = 10250

// followPause is the time between two looks at a log that is followed.
const followPause = 200 * time.Millisecond

// The second bytes of addresses that clusters on one machine may take. Others, such as 127.0.0.0/16, are
// used by all kinds of programs.
const firstNetwork, lastNetwork = 64, 250

// kubeletHost is the address of the one kubelet of all nodes. The proxy of the API server leads to it.
func (c *Cluster) kubeletHost() string { return fmt.Sprintf("127.%d.0.1", c.network) }

// serveKubelet serves what API servers ask kubelets for: logs of containers. They do not verify
// certificates of kubelets by default. Its port claims a network that no other
// cluster of this machine has: the kernel closes it when this program ends in any way.
func (c *Cluster) serveKubelet(ctx context.Context) error {
	var listener net.Listener
	for c.network = firstNetwork; ; c.network++ {
		var err error
		if listener, err = new(net.ListenConfig).Listen(ctx, "tcp", fmt.Sprintf("%s:%d", c.kubeletHost(), kubeletPort)); err == nil {
			break
		}
		if c.network == lastNetwork {
			return fmt.Errorf("no network of 127.0.0.0/8 is free for pods: %w", err)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", c.serveLogs)
	c.kubelet = &httptest.Server{Listener: listener, Config: &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}}
	c.kubelet.StartTLS()
	return nil
}

// serveLogs answers kubectl logs.
func (c *Cluster) serveLogs(w http.ResponseWriter, r *http.Request) {
	p := c.find(client.ObjectKey{Namespace: r.PathValue("namespace"), Name: r.PathValue("pod")})
	if p == nil {
		http.Error(w, "the pod does not run here", http.StatusNotFound)
		return
	}
	starts := p.starts(r.PathValue("container"))
	if r.URL.Query().Get("previous") == "true" {
		starts--
	}
	file, err := os.Open(c.logFile(p.get(), r.PathValue("container"), starts))
	if err != nil {
		http.Error(w, "the container has no such log", http.StatusNotFound)
		return
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(file)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	lines := bytes.SplitAfter(content, []byte("\n"))
	if most, err := strconv.Atoi(r.URL.Query().Get("tailLines")); err == nil {
		lines = lines[max(0, len(lines)-1-most):]
	}
	_, _ = w.Write(bytes.Join(lines, nil)) // the client may be gone
	looks := time.NewTicker(followPause)
	defer looks.Stop()
	for follow := r.URL.Query().Get("follow") == "true"; follow; {
		_ = http.NewResponseController(w).Flush() // as above
		select {
		case <-r.Context().Done():
			return
		case <-p.alive.Done():
			return
		case <-looks.C:
		}
		_, _ = io.Copy(w, file)
		follow = p.starts(r.PathValue("container")) == starts
	}
}

// starts is how often a container was started again.
func (p *pod) starts(container string) int32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.containers {
		if c.spec.Name == container {
			return c.status.RestartCount
		}
	}
	return 0
}
