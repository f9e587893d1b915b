// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/webhook/internal/testca"
)

// TestConnectionsHaveALimit: an address gets at most as many connections as there is still room for, so that there is
// room for others.
func TestConnectionsHaveALimit(t *testing.T) {
	l := &listener{limit: func() int64 { return 100 }, log: logr.Discard(), open: map[*connection]bool{}, addresses: map[string]*address{}}
	var open []*connection
	connect := func(host string) bool {
		_, served := net.Pipe()
		c := l.admit(served, &net.TCPAddr{IP: net.ParseIP(host)})
		if c != nil {
			c.waiting.Store(0)
			open = append(open, c)
		}
		return c != nil
	}
	flood := func(host string) (accepted int) {
		for accepted < 200 && connect(host) {
			accepted++
		}
		return accepted
	}
	expect.Equal(t, "connections of one address", 50, flood("10.0.0.1"))
	expect.Equal(t, "of a second", 25, flood("10.0.0.2"))
	expect.Equal(t, "of a third", 12, flood("fd00::3"))
	expect.Equal(t, "a fourth is accepted", true, connect("10.0.0.4"))
	for i := range 250 {
		connect(fmt.Sprint("10.0.1.", i))
	}
	expect.Equal(t, "connections of many addresses", 99, l.connections())
	expect.Equal(t, "another is accepted while the pod works for all", false, connect("10.0.0.5"))
	open[60].waiting.Store(2)
	open[40].waiting.Store(4)
	open[30].waiting.Store(3)
	expect.Equal(t, "another is accepted while the pod waits for some", true, connect("10.0.0.5"))
	expect.Equal(t, "connections of the first address", 49, l.addresses["10.0.0.1"].connections)
	expect.Equal(t, "it has lost the one that waited longest", false, l.open[open[30]])
	expect.Equal(t, "the first address is accepted", false, connect("10.0.0.1"))
	for _, c := range open {
		expect.NoError(t, c.Close())
		expect.NoError(t, c.Close()) // a second time, as net/http does
	}
	expect.Equal(t, "connections in the end", 0, l.connections())
	expect.Equal(t, "addresses in the end", 0, len(l.addresses))
}

// TestSlowHeaders: a client has ten seconds for the handshake, and for the header of a request from its first byte on. The
// server closes no connection that an API server may still use: those keep one for 90 seconds, also one that they have
// never used.
func TestSlowHeaders(t *testing.T) {
	directory, authority := t.TempDir(), testca.New(t)
	(&mounted{t: t, directory: directory}).mount(authority.Issue(t, serviceName, hours(1)))
	now := time.Now() // the certificate is valid now, and synctest has another time
	trust := &tls.Config{RootCAs: authority.Pool(), ServerName: serviceName, Time: func() time.Time { return now }}
	server, err := NewServer(newTestHandler(), ServerOptions{CertificateDirectory: directory, Log: logr.Discard()})
	expect.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		incoming := &pipe{served: make(chan net.Conn, 1)}
		go func() { _ = server.accept(incoming) }()
		const request = "GET " + HealthPath + " HTTP/1.1\r\nHost: a\r\n"
		for name, begin := range map[string]func(net.Conn){
			"no handshake": func(net.Conn) {},
			"no request":   func(c net.Conn) { expect.NoError(t, tls.Client(c, trust).Handshake()) },
			"half of a handshake": func(c net.Conn) {
				_, err := c.Write([]byte{22, 3, 1, 2, 0, 1})
				expect.NoError(t, err)
			},
			"half of the first header": func(c net.Conn) {
				secure := tls.Client(c, trust)
				expect.NoError(t, secure.Handshake())
				time.Sleep(90 * time.Second) //nolint:forbidigo // the clock of synctest
				_, err := io.WriteString(secure, request)
				expect.NoError(t, err)
			},
			"half of the second header": func(c net.Conn) {
				secure := tls.Client(c, trust)
				_, err := io.WriteString(secure, request+"\r\n")
				expect.NoError(t, err)
				expect.Equal(t, "the first request", "200 OK", statusLine(bufio.NewReader(secure)))
				time.Sleep(90 * time.Second) //nolint:forbidigo // the clock of synctest
				_, err = io.WriteString(secure, request)
				expect.NoError(t, err)
			},
		} {
			client, served := net.Pipe()
			incoming.served <- served
			begin(client)
			synctest.Wait()
			began := time.Now()
			_, _ = io.Copy(io.Discard, client)
			want := readHeaderTimeout
			if name == "no request" {
				want = idleTimeout // an API server may still send one
			}
			expect.Equal(t, name+": closed after", want, time.Since(began).Truncate(time.Second))
		}
		expect.NoError(t, server.http.Close())
		synctest.Wait()
		expect.Equal(t, "connections in the end", 0, server.listener.connections())
	})
}

// TestManyAddresses: clients of more addresses than there may be connections, which send nothing, a part of a header or
// a part of a body, do not keep others from connecting, and the connection of an API server stays open.
func TestManyAddresses(t *testing.T) {
	server := start(t, newTestHandler())
	trust := &tls.Config{RootCAs: server.authority.Pool(), ServerName: serviceName}
	from := func(ip net.IP) *net.Dialer { return &net.Dialer{LocalAddr: &net.TCPAddr{IP: ip}} }
	apiServer, err := tls.DialWithDialer(from(net.IPv4(127, 0, 0, 2)), "tcp", server.address, trust)
	expect.NoError(t, err)
	defer apiServer.Close()
	answers := bufio.NewReader(apiServer)
	call := func() {
		t.Helper()
		body := v1Review(twoObjects)
		_, err := fmt.Fprintf(apiServer, "POST %s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", testPath, len(body), body)
		expect.NoError(t, err)
		response, err := http.ReadResponse(answers, nil)
		expect.NoError(t, err)
		_, err = io.Copy(io.Discard, response.Body)
		expect.NoError(t, err)
		expect.Equal(t, "status of an API server", http.StatusOK, response.StatusCode)
	}
	const request = "POST " + testPath + " HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
	for i := range int(server.handler.limiters.connections.Load()) + 50 {
		if i%50 == 0 {
			call()
		}
		slow, err := from(net.IPv4(127, 1, byte(i), byte(1+i/256))).DialContext(t.Context(), "tcp", server.address)
		expect.NoError(t, err)
		t.Cleanup(func() { slow.Close() })
		if part := []int{0, len(request) / 2, len(request)}[i%3]; part > 0 {
			_, err := io.WriteString(tls.Client(slow, trust), request[:part])
			expect.NoError(t, err)
		}
	}
	kubelet := &http.Client{Transport: &http.Transport{DialContext: from(net.IPv4(127, 0, 0, 3)).DialContext, TLSClientConfig: trust}}
	defer kubelet.CloseIdleConnections()
	expect.Equal(t, "status of a probe", http.StatusOK, server.call(t, kubelet, http.MethodGet, HealthPath, "").Status)
	call()
}
