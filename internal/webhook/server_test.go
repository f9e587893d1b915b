// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/webhook/internal/testca"
)

// running is a Server on a loopback port.
type running struct {
	*Server
	address   string
	authority *testca.Authority
	stop      context.CancelFunc
	// draining is closed when the drain period starts. The test ends the period by closing drained, and
	// the time for new connections by closing endpoints.
	draining, drained, endpoints chan struct{}
	// closing is closed when the listener is closed.
	closing chan struct{}
	// result receives the error of serve.
	result chan error
}

// start serves a handler on a loopback port. adjust may change the server before it serves.
func start(t *testing.T, handler *Handler, directory string, authority *testca.Authority, adjust ...func(*Server)) *running {
	t.Helper()
	server, err := NewServer(handler, ServerOptions{CertificateDirectory: directory, DrainPeriod: time.Minute, Log: logr.Discard()})
	expect.NoError(t, err)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	r := &running{
		Server: server, address: listener.Addr().String(), authority: authority, stop: stop,
		draining: make(chan struct{}), drained: make(chan struct{}), endpoints: make(chan struct{}),
		closing: make(chan struct{}), result: make(chan error, 1),
	}
	server.after = func(period time.Duration) <-chan time.Time {
		end := r.endpoints
		switch period {
		case time.Minute:
			close(r.draining)
			end = r.drained
		case endpointsPeriod:
		default:
			t.Errorf("the server waits for %v", period)
		}
		ended := make(chan time.Time)
		go func() { <-end; close(ended) }()
		return ended
	}
	server.http.RegisterOnShutdown(func() { close(r.closing) })
	// The server then detects a replaced file immediately, even if the watch of the directory is
	// not set up yet.
	server.certificates.WithWatchInterval(time.Millisecond)
	for _, one := range adjust {
		one(server)
	}
	go func() { r.result <- server.serve(ctx, listener, nil) }()
	return r
}

// end stops the server in tests that do not test the shutdown.
func (r *running) end(t *testing.T) {
	t.Helper()
	r.stop()
	close(r.drained)
	if err := <-r.result; err != nil {
		t.Error(err)
	}
}

// client returns a client that keeps its connection, like an API server.
func (r *running) client(t *testing.T, config *tls.Config) *http.Client {
	t.Helper()
	config.RootCAs, config.ServerName = r.authority.Pool(), serviceName
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// answer is what a client received.
type answer struct {
	Status     int
	Protocol   string
	Close      bool
	Reused     bool
	LeafExpiry time.Time
}

// call may be called in any goroutine.
func (r *running) call(t *testing.T, client *http.Client, method, path, body string) answer {
	t.Helper()
	var reused bool
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }})
	request, err := http.NewRequestWithContext(ctx, method, "https://"+r.address+path, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return answer{}
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		t.Error(err)
		return answer{}
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Error(err)
	}
	return answer{response.StatusCode, response.Proto, response.Close, reused, response.TLS.PeerCertificates[0].NotAfter}
}

// mount writes a certificate like kubelet: files are symbolic links into a directory that is
// replaced atomically.
func mount(t *testing.T, directory, revision string, leaf testca.Leaf) {
	t.Helper()
	data := filepath.Join(directory, ".."+revision)
	steps := []error{
		os.Mkdir(data, 0o755),
		os.WriteFile(filepath.Join(data, "tls.crt"), leaf.Certificate, 0o600),
		os.WriteFile(filepath.Join(data, "tls.key"), leaf.Key, 0o600),
		os.Symlink(".."+revision, filepath.Join(directory, "..data_tmp")),
		os.Rename(filepath.Join(directory, "..data_tmp"), filepath.Join(directory, "..data")),
	}
	if _, err := os.Lstat(filepath.Join(directory, "tls.crt")); err != nil {
		steps = append(steps,
			os.Symlink("..data/tls.crt", filepath.Join(directory, "tls.crt")),
			os.Symlink("..data/tls.key", filepath.Join(directory, "tls.key")))
	}
	for _, err := range steps {
		expect.NoError(t, err)
	}
}

func hours(n int) time.Time { return time.Now().Add(time.Duration(n) * time.Hour) }

func TestServerFinishesWhatItAccepted(t *testing.T) {
	directory, authority := t.TempDir(), testca.New(t)
	leaf := authority.Issue(t, serviceName, hours(1))
	mount(t, directory, "1", leaf)

	entered, leave := make(chan struct{}), make(chan struct{})
	slow := func(dst, object []byte, toVersion string) ([]byte, error) {
		if strings.Contains(string(object), "slow") {
			close(entered)
			<-leave
		}
		return rename(dst, object, toVersion)
	}
	server := start(t, NewHandler(only(convertFunc(slow)), HandlerOptions{Log: logr.Discard()}), directory, authority)
	body := func(name string) string {
		return v1Review(`{"uid":"u","desiredAPIVersion":"example.com/v1","objects":[{"apiVersion":"example.com/v1beta1","kind":"` + name + `"}]}`)
	}
	kept, idle, other := server.client(t, &tls.Config{}), server.client(t, &tls.Config{}), server.client(t, &tls.Config{})

	for _, client := range []*http.Client{kept, idle} {
		got := server.call(t, client, http.MethodGet, ReadyPath, "")
		expect.Equal(t, "ready", answer{200, "HTTP/1.1", false, false, leaf.NotAfter}, got)
	}
	inFlight := make(chan answer)
	go func() {
		inFlight <- server.call(t, other, http.MethodPost, testPath, body("slow"))
	}()
	<-entered

	server.stop()
	<-server.draining
	got := server.call(t, kept, http.MethodPost, testPath, body("kept"))
	expect.Equal(t, "a call on a kept connection while draining", answer{200, "HTTP/1.1", true, true, leaf.NotAfter}, got)
	got = server.call(t, kept, http.MethodGet, ReadyPath, "")
	expect.Equal(t, "readiness while draining, on a new connection", answer{503, "HTTP/1.1", true, false, leaf.NotAfter}, got)

	close(server.endpoints)
	got = server.call(t, idle, http.MethodPost, testPath, body("idle"))
	expect.Equal(t, "a call on an idle connection after the last new one", answer{200, "HTTP/1.1", true, true, leaf.NotAfter}, got)
	close(leave)
	expect.Equal(t, "the call in flight", answer{200, "HTTP/1.1", false, false, leaf.NotAfter}, <-inFlight)
	other.CloseIdleConnections()
	if err := <-server.result; err != nil {
		t.Errorf("serve: %v", err)
	}
	if connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.address); err == nil {
		connection.Close()
		t.Error("the port is still open")
	}
}

// TestServerStaysReadyIfItIsAlone: kube-proxies lead new connections to a terminating pod that is ready, as
// long as there is no other. The server takes the whole period, in which the next pod starts.
func TestServerStaysReadyIfItIsAlone(t *testing.T) {
	server := startDefault(t, func(s *Server) {
		s.options.Alone = true
		after := s.after
		s.after = func(period time.Duration) <-chan time.Time {
			if period == endpointsPeriod {
				t.Error("the server may end before the next pod is ready")
			}
			return after(period)
		}
	})
	server.stop()
	<-server.draining
	got := server.call(t, server.client(t, &tls.Config{}), http.MethodGet, ReadyPath, "")
	got.LeafExpiry = time.Time{}
	expect.Equal(t, "readiness while draining", answer{Status: 200, Protocol: "HTTP/1.1", Close: true}, got)
}

func TestServerRotatesCertificates(t *testing.T) {
	directory, authority := t.TempDir(), testca.New(t)
	first, second := authority.Issue(t, serviceName, hours(1)), authority.Issue(t, serviceName, hours(2))
	mount(t, directory, "1", first)
	server := start(t, newTestHandler(), directory, authority)
	defer server.end(t)

	loaded := make(chan tls.Certificate, 2)
	server.certificates.RegisterCallback(func(certificate tls.Certificate) { loaded <- certificate })
	<-loaded

	kept := server.client(t, &tls.Config{})
	got := server.call(t, kept, http.MethodGet, ReadyPath, "")
	expect.Equal(t, "before", answer{200, "HTTP/1.1", false, false, first.NotAfter}, got)

	mount(t, directory, "2", second)
	<-loaded
	got = server.call(t, kept, http.MethodGet, ReadyPath, "")
	expect.Equal(t, "the kept connection", answer{200, "HTTP/1.1", false, true, first.NotAfter}, got)
	got = server.call(t, server.client(t, &tls.Config{}), http.MethodGet, ReadyPath, "")
	expect.Equal(t, "a new connection", answer{200, "HTTP/1.1", false, false, second.NotAfter}, got)
}

// TestServerRefusesOldTLS checks that versions before 1.2, and old ciphers of 1.2, are refused.
func TestServerRefusesOldTLS(t *testing.T) {
	server := startDefault(t)
	cbc := []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, tls.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA, tls.TLS_RSA_WITH_AES_128_GCM_SHA256}
	for name, test := range map[string]struct {
		client *tls.Config
		want   string
	}{
		"1.2 with old ciphers": {&tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: cbc}, "handshake failure"},
		"1.1":                  {&tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}, "protocol version not supported"},
		"1.0":                  {&tls.Config{MaxVersion: tls.VersionTLS10, MinVersion: tls.VersionTLS10}, "protocol version not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			response, err := server.client(t, test.client).Get("https://" + server.address + HealthPath)
			if err == nil {
				response.Body.Close()
			}
			if !strings.Contains(text(err), test.want) {
				t.Errorf("error is %v, want %s", err, test.want)
			}
		})
	}
}

func TestServerNeedsACertificate(t *testing.T) {
	directory, authority := t.TempDir(), testca.New(t)
	_, err := NewServer(newTestHandler(), ServerOptions{CertificateDirectory: directory})
	want := fmt.Sprintf("loading the serving certificate from %[1]s: open %[1]s/tls.crt: no such file or directory", directory)
	expect.Equal(t, "no certificate", want, text(err))

	leaf := authority.Issue(t, serviceName, hours(1))
	leaf.Key = authority.Issue(t, serviceName, hours(1)).Key
	mount(t, directory, "1", leaf)
	_, err = NewServer(newTestHandler(), ServerOptions{CertificateDirectory: directory})
	want = fmt.Sprintf("loading the serving certificate from %s: tls: private key does not match public key", directory)
	expect.Equal(t, "a foreign key", want, text(err))
}

func TestServerReportsABusyPort(t *testing.T) {
	directory, authority := t.TempDir(), testca.New(t)
	mount(t, directory, "1", authority.Issue(t, serviceName, hours(1)))
	busy, err := new(net.ListenConfig).Listen(t.Context(), "tcp", ":0")
	expect.NoError(t, err)
	defer busy.Close()
	server, err := NewServer(newTestHandler(), ServerOptions{CertificateDirectory: directory, Address: busy.Addr().String()})
	expect.NoError(t, err)
	if err := server.Run(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "listening for conversion requests: ") {
		t.Errorf("error is %v", err)
	}
}

// TestServerEndsWhenItsListenerFails checks that serve returns without a signal.
func TestServerEndsWhenItsListenerFails(t *testing.T) {
	directory, authority := t.TempDir(), testca.New(t)
	mount(t, directory, "1", authority.Issue(t, serviceName, hours(1)))
	server, err := NewServer(newTestHandler(), ServerOptions{CertificateDirectory: directory, Log: logr.Discard()})
	expect.NoError(t, err)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	listener.Close()
	if err := server.serve(t.Context(), listener, nil); err == nil || !strings.HasPrefix(err.Error(), "serving conversion requests: ") {
		t.Errorf("error is %v", err)
	}
}
