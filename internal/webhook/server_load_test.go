// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/webhook/internal/testca"
)

// callers is the number of concurrent connections from API servers.
const callers = 16

// service routes new connections to one pod, like a Service with one ready endpoint.
type service struct{ pod atomic.Pointer[string] }

func (s *service) route(address string) { s.pod.Store(&address) }

// caller keeps its connection as long as the pod does.
type caller struct {
	client *http.Client
	// pods counts the answers by address. dropped counts the connections that a pod closed or asked
	// to close. The client may also close connections by itself.
	pods    map[string]int
	dropped atomic.Int32
}

// connection reports to its caller when the pod closes it.
type connection struct {
	net.Conn
	caller *caller
	closed atomic.Bool
}

func (c *connection) Read(into []byte) (int, error) {
	n, err := c.Conn.Read(into)
	if err != nil && !c.closed.Load() {
		c.caller.dropped.Add(1)
	}
	return n, err
}

func (c *connection) Close() error {
	c.closed.Store(true)
	return c.Conn.Close()
}

func (s *service) newCaller(t *testing.T, authority *testca.Authority) *caller {
	t.Helper()
	c := &caller{pods: map[string]int{}}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: authority.Pool(), ServerName: serviceName},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, *s.pod.Load())
			return &connection{Conn: conn, caller: c}, err
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	c.client = &http.Client{Transport: transport}
	return c
}

// convert makes one call and returns the address of the pod that answered. A failed call fails the
// test.
func (c *caller) convert(t *testing.T, kind string) string {
	t.Helper()
	var pod string
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		pod = info.Conn.RemoteAddr().String()
	}})
	body := v1Review(`{"uid":"u","desiredAPIVersion":"example.com/v1","objects":[{"apiVersion":"example.com/v1beta1","kind":"` + kind + `"}]}`)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+serviceName+testPath, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return ""
	}
	// API servers do not retry a POST that loses its connection.
	request.GetBody = nil
	request.Header.Set("Content-Type", "application/json")
	response, err := c.client.Do(request)
	if err != nil {
		t.Errorf("a call failed: %v", err)
		return ""
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || !bytes.Contains(answer, []byte(`"status":"Success"`)) {
		t.Errorf("a call failed: %s, %v", answer, err)
	}
	if response.Close {
		c.dropped.Add(1)
	}
	c.pods[pod]++
	return pod
}

// TestNoCallFailsWhenAPodStops moves busy connections from a pod that stops to another one, while
// the first pod has calls in flight.
func TestNoCallFailsWhenAPodStops(t *testing.T) {
	directory, authority := t.TempDir(), testca.New(t)
	mount(t, directory, "1", authority.Issue(t, serviceName, hours(1)))
	entered, leave := make(chan struct{}, callers), make(chan struct{})
	handler := func() *Handler {
		return NewHandler(only(convertFunc(func(dst, object []byte, toVersion string) ([]byte, error) {
			if bytes.Contains(object, []byte("slow")) {
				entered <- struct{}{}
				<-leave
			}
			return rename(dst, object, toVersion)
		})), HandlerOptions{Log: logr.Discard()})
	}
	first, second := start(t, handler(), directory, authority), start(t, handler(), directory, authority)
	defer second.end(t)
	var endpoints service
	endpoints.route(first.address)

	var calling, moving, slow sync.WaitGroup
	var stop atomic.Bool
	moving.Add(callers)
	all := make([]*caller, callers)
	calling.Add(callers)
	for i := range all {
		all[i] = endpoints.newCaller(t, authority)
		all[i].convert(t, "warm")
		slow.Go(func() { endpoints.newCaller(t, authority).convert(t, "slow") })
		go func() {
			defer calling.Done()
			moved := false
			for !stop.Load() {
				if pod := all[i].convert(t, "busy"); !moved && pod != first.address {
					moved = true
					moving.Done()
				}
			}
		}()
	}
	for range callers {
		<-entered
	}

	first.stop()
	<-first.draining
	endpoints.route(second.address)
	moving.Wait()
	close(first.drained)
	<-first.closing
	close(leave)
	slow.Wait()
	if err := <-first.result; err != nil {
		t.Errorf("serve: %v", err)
	}
	stop.Store(true)
	calling.Wait()
	for _, c := range all {
		if c.pods[first.address] == 0 || c.pods[second.address] == 0 || len(c.pods) != 2 {
			t.Errorf("a caller was answered by %v", c.pods)
		}
	}
}

// TestNewCertificatesDropNoConnection replaces the certificate three times under busy connections.
// Each connection keeps its certificate.
func TestNewCertificatesDropNoConnection(t *testing.T) {
	directory, authority := t.TempDir(), testca.New(t)
	mount(t, directory, "1", authority.Issue(t, serviceName, hours(1)))
	server := start(t, newTestHandler(), directory, authority)
	defer server.end(t)
	loaded := make(chan tls.Certificate, 1)
	server.certificates.RegisterCallback(func(certificate tls.Certificate) { loaded <- certificate })
	<-loaded
	var endpoints service
	endpoints.route(server.address)

	var calling sync.WaitGroup
	var stop atomic.Bool
	all := make([]*caller, callers)
	for i := range all {
		all[i] = endpoints.newCaller(t, authority)
		all[i].convert(t, "warm")
		calling.Go(func() {
			for !stop.Load() {
				all[i].convert(t, "busy")
			}
		})
	}
	for i, revision := range []string{"2", "3", "4"} {
		leaf := authority.Issue(t, serviceName, hours(2+i))
		mount(t, directory, revision, leaf)
		<-loaded
		got := server.call(t, server.client(t, &tls.Config{}), http.MethodGet, ReadyPath, "")
		expect.Equal(t, "a new connection", answer{200, "HTTP/1.1", false, false, leaf.NotAfter}, got)
	}
	stop.Store(true)
	calling.Wait()
	for _, c := range all {
		expect.Equal(t, "connections that the pod ended", 0, int(c.dropped.Load()))
	}
}

// TestServerKeepsItsCertificate checks files that are invalid or missing.
func TestServerKeepsItsCertificate(t *testing.T) {
	directory, authority := t.TempDir(), testca.New(t)
	mount(t, directory, "1", authority.Issue(t, serviceName, hours(1)))
	server := start(t, newTestHandler(), directory, authority)
	defer server.end(t)
	loaded := make(chan tls.Certificate, 1)
	server.certificates.RegisterCallback(func(certificate tls.Certificate) { loaded <- certificate })
	<-loaded
	first, second := authority.Issue(t, serviceName, hours(2)), authority.Issue(t, serviceName, hours(3))
	mount(t, directory, "2", first)
	// The server now watches the files.
	<-loaded

	breakages := map[string]func(certificate, key string) error{
		"the key is still the old one": func(certificate, _ string) error { return os.WriteFile(certificate, second.Certificate, 0o600) },
		"the certificate is cut":       func(certificate, _ string) error { return os.Truncate(certificate, 100) },
		"the key is empty":             func(_, key string) error { return os.Truncate(key, 0) },
		"the files are gone":           func(certificate, key string) error { _ = os.Remove(key); return os.Remove(certificate) },
	}
	for name, breakIt := range breakages {
		t.Run(name, func(t *testing.T) {
			if err := breakIt(filepath.Join(directory, "..2", "tls.crt"), filepath.Join(directory, "..2", "tls.key")); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			if err := server.certificates.ReadCertificate(); err == nil {
				t.Error("the broken certificate was read")
			}
			got := server.call(t, server.client(t, &tls.Config{}), http.MethodGet, ReadyPath, "")
			expect.Equal(t, "a new connection", answer{200, "HTTP/1.1", false, false, first.NotAfter}, got)
		})
	}
}
