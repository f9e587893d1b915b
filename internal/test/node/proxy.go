// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
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
	const accepted = "HTTP/1.1 200 OK\r\n\r\n"
	host, port, _ := net.SplitHostPort(request.Host)
	if request.RequestURI != "" {
		host, port, _ = net.SplitHostPort(request.RequestURI)
	}
	if port == strconv.Itoa(kubeletPort) && c.isNode(host) {
		host = c.kubeletHost()
	}
	target, err := c.dial(ctx, host, port)
	if err != nil {
		_, _ = fmt.Fprintf(connection, "HTTP/1.1 503 %s\r\n\r\n", strings.ReplaceAll(err.Error(), "\n", " ")) // it may be gone
		return
	}
	defer func() { _ = target.Close() }()
	if _, err := io.WriteString(connection, accepted); err != nil {
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
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: text(address), Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	return (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp", address)
}

// text is an address.
type text string

func (text) Network() string  { return "tcp" }
func (t text) String() string { return string(t) }

// isNode reports whether a host is a node. API servers prefer its name.
func (c *Cluster) isNode(host string) bool {
	for _, n := range c.all() {
		if host == n.Name || host == n.ip() {
			return true
		}
	}
	return false
}
