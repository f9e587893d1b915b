// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
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
	l := &listener{limit: func() int64 { return 100 }, log: logr.Discard(), addresses: map[string]*address{}}
	var open []net.Conn
	connect := func(host string) bool {
		from := l.admit(&net.TCPAddr{IP: net.ParseIP(host)})
		if from != nil {
			_, served := net.Pipe()
			open = append(open, &connection{Conn: served, listener: l, from: from})
		}
		return from != nil
	}
	flood := func(host string) (accepted int) {
		for connect(host) {
			accepted++
		}
		return accepted
	}
	expect.Equal(t, "connections of one address", 50, flood("10.0.0.1"))
	expect.Equal(t, "of a second", 25, flood("10.0.0.2"))
	expect.Equal(t, "of a third", 12, flood("fd00::3"))
	expect.Equal(t, "a fourth is accepted", true, connect("10.0.0.4"))
	for _, c := range open {
		c.Close()
		c.Close() // a second time, as net/http does
	}
	expect.Equal(t, "connections in the end", 0, l.connections())
	expect.Equal(t, "addresses in the end", 0, len(l.addresses))
}

// TestSlowHeaders: a client has ten seconds for the handshake, and for the header of a request from its first byte on.
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
				time.Sleep(time.Minute) //nolint:forbidigo // the clock of synctest
				_, err := io.WriteString(secure, request)
				expect.NoError(t, err)
			},
			"half of the second header": func(c net.Conn) {
				secure := tls.Client(c, trust)
				_, err := io.WriteString(secure, request+"\r\n")
				expect.NoError(t, err)
				expect.Equal(t, "the first request", "200 OK", statusLine(bufio.NewReader(secure)))
				time.Sleep(time.Minute) //nolint:forbidigo // the clock of synctest
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
