// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/webhook/internal/testca"
)

// TestServerAnswersPrometheus checks the metrics port, also that it is closed at the end.
func TestServerAnswersPrometheus(t *testing.T) {
	directory, authority := t.TempDir(), testca.New(t)
	leaf := authority.Issue(t, serviceName, hours(1))
	mount(t, directory, "1", leaf)
	server, err := NewServer(newTestHandler(), ServerOptions{CertificateDirectory: directory, MetricsAddress: "127.0.0.1:0", Log: logr.Discard()})
	expect.NoError(t, err)
	var listeners [2]net.Listener
	for i := range listeners {
		if listeners[i], err = new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- server.serve(ctx, listeners[0], listeners[1]) }()

	response, err := http.Get("http://" + listeners[1].Addr().String() + MetricsPath)
	expect.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	expect.NoError(t, err)
	var expiry float64
	_, line, _ := strings.Cut(string(body), "\n"+namespace+`_certificate_expiry_timestamp_seconds{crd="crontabs.example.com"} `)
	if _, err := fmt.Sscan(line, &expiry); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	expect.Equal(t, "expiry of the certificate", leaf.NotAfter.Unix(), int64(expiry))

	stop()
	if err := <-result; err != nil {
		t.Errorf("serve: %v", err)
	}
	if connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", listeners[1].Addr().String()); err == nil {
		connection.Close()
		t.Error("the port is still open")
	}
}

func TestServerReportsABusyMetricsPort(t *testing.T) {
	directory, authority := t.TempDir(), testca.New(t)
	mount(t, directory, "1", authority.Issue(t, serviceName, hours(1)))
	busy, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	defer busy.Close()
	server, err := NewServer(newTestHandler(), ServerOptions{CertificateDirectory: directory, MetricsAddress: busy.Addr().String()})
	expect.NoError(t, err)
	want := "listening for Prometheus at " + busy.Addr().String() + ": "
	if err := server.Run(t.Context()); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error is %v", err)
	}
}

func TestServerWithoutMetrics(t *testing.T) {
	directory, authority := t.TempDir(), testca.New(t)
	mount(t, directory, "1", authority.Issue(t, serviceName, hours(1)))
	for _, address := range []string{"", "0"} {
		server, err := NewServer(newTestHandler(), ServerOptions{CertificateDirectory: directory, MetricsAddress: address})
		expect.NoError(t, err)
		if server.metrics != nil {
			t.Errorf("%q: metrics are served at %q", address, server.metrics.Addr)
		}
	}
}
