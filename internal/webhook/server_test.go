// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/webhook/internal/testca"
)

// running is a Server on loopback ports, with a certificate for an hour.
type running struct {
	*Server
	*mounted
	address, metricsAddress string
	authority               *testca.Authority
	leaf                    testca.Leaf
	stop                    context.CancelFunc
	// draining is closed when the drain period starts. The test ends the period by closing drained, and
	// the time for new connections by closing endpoints.
	draining, drained, endpoints chan struct{}
	drainedOnce                  sync.Once
	// ended is closed when serve has ended.
	ended chan struct{}
}

// start serves a handler. adjust may change the server before it serves. At the end, the server must have no error.
func start(t *testing.T, handler *Handler, adjust ...func(*Server)) *running {
	t.Helper()
	r := &running{
		mounted: &mounted{t: t, directory: t.TempDir()}, authority: testca.New(t),
		draining: make(chan struct{}), drained: make(chan struct{}), endpoints: make(chan struct{}), ended: make(chan struct{}),
	}
	r.leaf = r.authority.Issue(t, serviceName, hours(1))
	r.mount(r.leaf)
	var err error
	r.Server, err = NewServer(handler, ServerOptions{CertificateDirectory: r.directory, MetricsAddress: "127.0.0.1:0", DrainPeriod: time.Minute, Log: logr.Discard()})
	expect.NoError(t, err)
	listener, metrics := listen(t), listen(t)
	r.address, r.metricsAddress = listener.Addr().String(), metrics.Addr().String()
	r.after = func(period time.Duration) <-chan time.Time {
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
	r.certificate.every = time.Millisecond
	for _, one := range adjust {
		one(r.Server)
	}
	var ctx context.Context
	ctx, r.stop = context.WithCancel(t.Context())
	go func() {
		defer close(r.ended)
		if err := r.serve(ctx, listener, metrics); err != nil {
			t.Errorf("serve: %v", err)
		}
	}()
	t.Cleanup(r.end)
	return r
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	return listener
}

// end stops the server, without a drain period.
func (r *running) end() {
	r.stop()
	r.drainedOnce.Do(func() { close(r.drained) })
	<-r.ended
}

// refuses checks that nothing listens any more.
func refuses(t *testing.T, address string) {
	t.Helper()
	if connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", address); err == nil {
		connection.Close()
		t.Errorf("the port %s is still open", address)
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

// mount replaces the certificate like a kubelet.
func (m *mounted) mount(leaf testca.Leaf) {
	m.t.Helper()
	m.update(map[string][]byte{"tls.crt": leaf.Certificate, "tls.key": leaf.Key})
}

func hours(n int) time.Time { return time.Now().Add(time.Duration(n) * time.Hour) }

func TestServerFinishesWhatItAccepted(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	slow := func(dst, object []byte, toVersion string) ([]byte, error) {
		if strings.Contains(string(object), "slow") {
			close(entered)
			<-leave
		}
		return rename(dst, object, toVersion)
	}
	server := start(t, NewHandler(only(convertFunc(slow)), HandlerOptions{Log: logr.Discard()}))
	body := func(name string) string {
		return v1Review(`{"uid":"u","desiredAPIVersion":"example.com/v1","objects":[{"apiVersion":"example.com/v1beta1","kind":"` + name + `"}]}`)
	}
	kept, idle, other := server.client(t, &tls.Config{}), server.client(t, &tls.Config{}), server.client(t, &tls.Config{})
	expiry := server.leaf.NotAfter

	for _, client := range []*http.Client{kept, idle} {
		got := server.call(t, client, http.MethodGet, ReadyPath, "")
		expect.Equal(t, "ready", answer{200, "HTTP/1.1", false, false, expiry}, got)
	}
	inFlight := make(chan answer)
	go func() {
		inFlight <- server.call(t, other, http.MethodPost, testPath, body("slow"))
	}()
	<-entered

	server.stop()
	<-server.draining
	got := server.call(t, kept, http.MethodPost, testPath, body("kept"))
	expect.Equal(t, "a call on a kept connection while draining", answer{200, "HTTP/1.1", true, true, expiry}, got)
	got = server.call(t, kept, http.MethodGet, ReadyPath, "")
	expect.Equal(t, "readiness while draining, on a new connection", answer{503, "HTTP/1.1", true, false, expiry}, got)

	close(server.endpoints)
	got = server.call(t, idle, http.MethodPost, testPath, body("idle"))
	expect.Equal(t, "a call on an idle connection after the last new one", answer{200, "HTTP/1.1", true, true, expiry}, got)
	close(leave)
	expect.Equal(t, "the call in flight", answer{200, "HTTP/1.1", false, false, expiry}, <-inFlight)
	other.CloseIdleConnections()
	<-server.ended
	refuses(t, server.address)
}

// TestServerStaysReadyIfItIsAlone: kube-proxies lead new connections to a terminating pod that is ready, as
// long as there is no other. The server takes the whole period, in which the next pod starts.
func TestServerStaysReadyIfItIsAlone(t *testing.T) {
	server := start(t, newTestHandler(), func(s *Server) {
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
	expect.Equal(t, "readiness while draining", answer{200, "HTTP/1.1", true, false, server.leaf.NotAfter}, got)
}

// TestServerRotatesCertificates: a connection keeps its certificate, and files that are invalid or missing
// replace none.
func TestServerRotatesCertificates(t *testing.T) {
	logged := make(chan string, 10)
	server := start(t, newTestHandler(), func(s *Server) {
		s.certificate.log = funcr.New(func(_, line string) { logged <- line }, funcr.Options{})
	})
	kept := server.client(t, &tls.Config{})
	ready := func(what string, client *http.Client, reused bool, leaf testca.Leaf) {
		t.Helper()
		expect.Equal(t, what, answer{200, "HTTP/1.1", false, reused, leaf.NotAfter}, server.call(t, client, http.MethodGet, ReadyPath, ""))
	}
	ready("before", kept, false, server.leaf)
	second, third := server.authority.Issue(t, serviceName, hours(2)), server.authority.Issue(t, serviceName, hours(3))
	// Before the text, others may be logged: a read that begins before a mount and ends after it finds two files that do not match.
	logs := func(what, text string) {
		t.Helper()
		expect.Eventually(t, what, func() (bool, string) { line := <-logged; return strings.Contains(line, text), line })
	}
	server.mount(second)
	logs("another certificate is served", "Serving another certificate")
	ready("the kept connection", kept, true, server.leaf)
	ready("a new connection", server.client(t, &tls.Config{}), false, second)

	certificate, key := filepath.Join(server.directory, "..data", "tls.crt"), filepath.Join(server.directory, "..data", "tls.key")
	for _, broken := range []struct {
		how, logged string
		breakIt     func() error
	}{
		{"the key is still the old one", "private key does not match", func() error { return os.WriteFile(certificate, third.Certificate, 0o600) }},
		{"the key is empty", "any PEM data in key", func() error { return os.Truncate(key, 0) }},
		{"the certificate is cut", "any PEM data in certificate", func() error { return os.Truncate(certificate, 100) }},
		{"the files are gone", "no such file", func() error { return errors.Join(os.Remove(key), os.Remove(certificate)) }},
	} {
		expect.NoError(t, broken.breakIt())
		logs(broken.how, broken.logged)
		ready(broken.how, server.client(t, &tls.Config{}), false, second)
	}
	server.mount(third)
	logs("a complete certificate is served again", "Serving another certificate")
	ready("the last", server.client(t, &tls.Config{}), false, third)
}

// TestServerRefusesOldTLS checks that versions before 1.2, and old ciphers of 1.2, are refused.
func TestServerRefusesOldTLS(t *testing.T) {
	server := start(t, newTestHandler())
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
			expect.Contains(t, "the error", text(err), test.want)
		})
	}
}

// TestServerFails without a valid certificate, without its ports, and when its listener fails.
func TestServerFails(t *testing.T) {
	authority, busy, closed := testca.New(t), listen(t), listen(t)
	defer busy.Close()
	closed.Close()
	valid := authority.Issue(t, serviceName, hours(1))
	foreign := valid
	foreign.Key = authority.Issue(t, serviceName, hours(1)).Key
	run := func(s *Server) error { return s.Run(t.Context()) }
	for name, test := range map[string]struct {
		leaf    testca.Leaf
		options ServerOptions
		serve   func(*Server) error
		want    string
	}{
		"a foreign key":       {leaf: foreign, want: "loading the serving certificate from DIRECTORY: tls: private key does not match public key"},
		"a busy port":         {leaf: valid, options: ServerOptions{Address: busy.Addr().String()}, serve: run, want: "listening for conversion requests: "},
		"a busy metrics port": {leaf: valid, options: ServerOptions{MetricsAddress: busy.Addr().String()}, serve: run, want: "listening for Prometheus at " + busy.Addr().String() + ": "},
		"a closed listener":   {leaf: valid, serve: func(s *Server) error { return s.serve(t.Context(), closed, nil) }, want: "serving conversion requests: "},
	} {
		t.Run(name, func(t *testing.T) {
			test.options.CertificateDirectory = t.TempDir()
			(&mounted{t: t, directory: test.options.CertificateDirectory}).mount(test.leaf)
			server, err := NewServer(newTestHandler(), test.options)
			if err == nil {
				err = test.serve(server)
			}
			if want := strings.ReplaceAll(test.want, "DIRECTORY", test.options.CertificateDirectory); !strings.HasPrefix(text(err), want) {
				t.Errorf("error is %v, want %s", err, want)
			}
		})
	}
	directory := t.TempDir()
	_, err := NewServer(newTestHandler(), ServerOptions{CertificateDirectory: directory})
	want := fmt.Sprintf("loading the serving certificate from %[1]s: open %[1]s/tls.crt: no such file or directory", directory)
	expect.Equal(t, "no certificate", want, text(err))
}

// TestServerAnswersPrometheus checks the metrics port, also that it is closed at the end, or not opened.
func TestServerAnswersPrometheus(t *testing.T) {
	server := start(t, newTestHandler())
	response, err := http.Get("http://" + server.metricsAddress + MetricsPath)
	expect.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	expect.NoError(t, err)
	var expiry float64
	_, line, _ := strings.Cut(string(body), "\n"+namespace+`_certificate_expiry_timestamp_seconds{crd="crontabs.example.com"} `)
	if _, err := fmt.Sscan(line, &expiry); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	expect.Equal(t, "expiry of the certificate", server.leaf.NotAfter.Unix(), int64(expiry))
	server.end()
	refuses(t, server.metricsAddress)
	for _, address := range []string{"", "0"} {
		server, err := NewServer(newTestHandler(), ServerOptions{CertificateDirectory: server.directory, MetricsAddress: address})
		expect.NoError(t, err)
		expect.Equal(t, fmt.Sprintf("with the address %q, there are no metrics", address), true, server.metrics == nil)
	}
}
