// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"

	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
)

const (
	// DefaultAddress is the address that the server listens on.
	DefaultAddress = ":9443"
	// DefaultDrainPeriod is how long the server waits at most, after it was told to stop, until API
	// servers have closed their connections. They close one without calls after 90 s: IdleConnTimeout
	// of http.DefaultTransport, which k8s.io/apimachinery/pkg/util/net sets for all clients.
	DefaultDrainPeriod = 100 * time.Second
	// ShutdownTimeout bounds the wait for calls in flight after the drain period. API servers
	// abandon a conversion after this time. The terminationGracePeriodSeconds of the pod must
	// exceed the sum of the two.
	ShutdownTimeout = 30 * time.Second
)

const (
	// endpointsPeriod is the part of the drain period in which new connections may arrive, until
	// EndpointSlices and kube-proxies lead to other pods.
	endpointsPeriod = 10 * time.Second
	// pollPeriod is how often the server counts its connections while it drains.
	pollPeriod = 100 * time.Millisecond
	// idleTimeout is well above the 90 s after which API servers close a connection without calls,
	// also one that they opened and never used: another connection was free before its handshake
	// ended. If the server closed it first, a call could be lost.
	idleTimeout = 5 * time.Minute
	// readTimeout and writeTimeout free the resources of a stuck client. API servers have abandoned
	// the call by then.
	readTimeout  = 30 * time.Second
	writeTimeout = 60 * time.Second
	// readHeaderTimeout is for the handshake of TLS, and for a header from its first byte on.
	readHeaderTimeout = 10 * time.Second
	// maxHeaderBytes is ten times what API servers send. net/http adds 4 KiB.
	maxHeaderBytes = 4 << 10
	// metricsConnections is the limit of connections to the port for Prometheus, and of scrapes at a time.
	metricsConnections, metricsScrapes = 32, 2
)

// ServerOptions configures a Server.
type ServerOptions struct {
	// Address to listen on, such as ":9443".
	Address string
	// CertificateDirectory contains tls.crt and tls.key, like a mounted Secret.
	CertificateDirectory string
	// Rulesets is the directory that the handler serves; nil if its rulesets never change.
	Rulesets *RulesetDirectory
	// MetricsAddress is the address that serves Prometheus, without TLS, such as ":8080". "0" or an
	// empty string disables metrics. The TLS port serves none.
	MetricsAddress string
	// DrainPeriod is how long the server waits at most for API servers to close their connections,
	// after the context of Run ended. It answers calls all that time.
	DrainPeriod time.Duration
	// Alone tells that no other pod converts until the next one has started. The server is then ready
	// while it drains, for the whole period.
	Alone bool
	// Log receives errors of connections and the steps of the shutdown.
	Log logr.Logger
}

// Server serves a Handler over TLS.
type Server struct {
	handler     *Handler
	options     ServerOptions
	certificate *certificate
	http        *http.Server
	// listener has the open connections of http.
	listener *listener
	// readTimeout is the constant, except in tests.
	readTimeout time.Duration
	// metrics is nil if metrics are disabled.
	metrics *http.Server
	// after is time.After, except in tests.
	after func(time.Duration) <-chan time.Time
}

// NewServer returns a Server whose certificate is loaded. It fails if there is no certificate, or
// if certificate and key do not match.
func NewServer(handler *Handler, options ServerOptions) (*Server, error) {
	certificate, err := openCertificate(options.CertificateDirectory, options.Log)
	if err != nil {
		return nil, err
	}
	s := &Server{handler: handler, options: options, certificate: certificate, readTimeout: readTimeout, after: time.After}
	s.http = s.newHTTPServer(handler)
	// crypto/tls resumes sessions by tickets without configuration.
	config := &tls.Config{GetCertificate: certificate.get, NextProtos: []string{"http/1.1"}}
	pki.RequireModernTLS(config)
	s.listener = s.newListener(config, handler.limiters.connections.Load)
	handler.metrics.certificateExpiry = certificate.expiry
	if options.Rulesets != nil {
		options.Rulesets.serve(handler)
	}
	handler.ServeFailures(certificate.current.Load)
	if s.options.MetricsAddress != "" && s.options.MetricsAddress != "0" {
		s.metrics = s.newHTTPServer(handler.metrics.handler())
	}
	return s, nil
}

func (s *Server) newHTTPServer(handler http.Handler) *http.Server {
	// API servers use HTTP/1.1 for webhooks behind a Service. HTTP/2 would only add attack surface.
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Server{
		Handler:           s.receive(handler),
		Protocols:         protocols,
		ConnContext:       withConnection,
		ReadHeaderTimeout: readHeaderTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		// Mostly failed handshakes of port scanners, and clients that disconnected.
		ErrorLog: slog.NewLogLogger(logr.ToSlogHandler(s.options.Log.V(1)), slog.LevelInfo),
	}
}

func (s *Server) newListener(config *tls.Config, limit func() int64) *listener {
	return &listener{tls: config, limit: limit, log: s.options.Log, open: map[*connection]bool{}, addresses: map[string]*address{}}
}

// receive limits the time for the body of a request.
func (s *Server) receive(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.readTimeout)) // net/http supports it
		handler.ServeHTTP(w, r)
		connectionOf(r.Context()).waiting.Store(int64(clock()))
	})
}

// Run serves until ctx ends and then drains: readiness fails immediately unless the server is alone, the
// server answers calls until API servers have closed their connections, at most for the drain period,
// and then finishes those in flight.
func (s *Server) Run(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.options.Address)
	if err != nil {
		return fmt.Errorf("listening for conversion requests: %w", err)
	}
	if s.metrics == nil {
		return s.serve(ctx, listener, nil)
	}
	metrics, err := new(net.ListenConfig).Listen(ctx, "tcp", s.options.MetricsAddress)
	if err != nil {
		listener.Close()
		return fmt.Errorf("listening for Prometheus at %s: %w", s.options.MetricsAddress, err)
	}
	return s.serve(ctx, listener, metrics)
}

// serve runs the server on its listeners, and closes them. The first part that fails stops the
// others.
func (s *Server) serve(ctx context.Context, listener, metrics net.Listener) error {
	// Nothing below ends with ctx itself: the server accepts calls and new certificates until the
	// end of the shutdown.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group, running := errgroup.WithContext(running)
	group.Go(func() error { return s.certificate.follow(running) })
	if s.options.Rulesets != nil {
		group.Go(func() error { return s.options.Rulesets.follow(running, s.handler) })
	}
	group.Go(func() error { return s.accept(listener) })
	if metrics != nil {
		group.Go(func() error { return s.acceptMetrics(metrics) })
	}
	group.Go(func() error {
		defer stop()
		return s.shutDown(ctx, running)
	})
	return group.Wait()
}

func (s *Server) accept(listener net.Listener) error {
	s.options.Log.Info("Serving conversions", "address", listener.Addr().String(), "rulesetHashes", s.handler.served.Load().hashes)
	s.listener.Listener = listener
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving conversion requests: %w", err)
	}
	return nil
}

func (s *Server) acceptMetrics(listener net.Listener) error {
	s.options.Log.Info("Serving metrics", "address", listener.Addr().String())
	limited := s.newListener(nil, func() int64 { return metricsConnections })
	limited.Listener = listener
	if err := s.metrics.Serve(limited); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving metrics: %w", err)
	}
	return nil
}

// shutDown waits for the end of ctx, drains, and closes the server. If another part of the server
// failed, it closes the server immediately.
func (s *Server) shutDown(ctx, running context.Context) error {
	select {
	case <-ctx.Done():
		s.drain(running)
	case <-running.Done():
	}
	deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), ShutdownTimeout)
	defer cancel()
	err := s.http.Shutdown(deadline)
	if s.metrics != nil {
		// Metrics end last, so that the shutdown can be observed. A lost scrape does no harm.
		_ = s.metrics.Close()
	}
	if err != nil {
		return fmt.Errorf("finishing the conversions in flight: %w", err)
	}
	return nil
}

// drain waits until new connections lead to other pods, and then for the end of the others. The
// handler ends each of them with its next call, and API servers end those without calls. The server
// closes none before: an API server could have sent a call on it, which it would not send again. A server
// that is alone answers for the whole period.
func (s *Server) drain(running context.Context) {
	s.handler.Drain(!s.options.Alone)
	s.options.Log.Info("Draining", "period", s.options.DrainPeriod.String())
	end := s.after(s.options.DrainPeriod)
	var others <-chan time.Time // alone, it waits for none
	if !s.options.Alone {
		others = s.after(endpointsPeriod)
	}
	select {
	case <-others:
	case <-end:
		return
	case <-running.Done():
		return
	}
	poll := time.NewTicker(pollPeriod)
	defer poll.Stop()
	for s.listener.connections() > 0 {
		select {
		case <-poll.C:
		case <-end:
			return
		case <-running.Done():
			return
		}
	}
}
