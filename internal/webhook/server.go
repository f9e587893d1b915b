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
	"path/filepath"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"

	"github.com/conversion-operator/conversion-operator/internal/pki"
)

const (
	// DefaultPort is the port that the server listens at.
	DefaultPort = 9443
	// DefaultDrainPeriod is how long the server goes on after it was told to
	// stop: time for EndpointSlices, kube-proxies and API servers to look elsewhere.
	DefaultDrainPeriod = 10 * time.Second
	// ShutdownTimeout bounds the wait for calls in flight after the drain period.
	// It is the time after which an API server gives a conversion up. A pod's
	// terminationGracePeriodSeconds must exceed the sum of the two.
	ShutdownTimeout = 30 * time.Second
)

const (
	// idleTimeout is well above the 90 s after which an API server drops an idle
	// connection: the client that closes first decides whether a call can be lost.
	idleTimeout = 5 * time.Minute
	// readTimeout and writeTimeout free what a stuck client holds. An API server
	// has given up by then.
	readTimeout       = 30 * time.Second
	writeTimeout      = 60 * time.Second
	readHeaderTimeout = 10 * time.Second
	maxHeaderBytes    = 64 << 10
)

// ServerOptions says where a Server listens and with which certificate.
type ServerOptions struct {
	// Port to listen at, on all addresses.
	Port int
	// CertificateDirectory holds tls.crt and tls.key, as a mounted Secret does.
	CertificateDirectory string
	// MetricsAddress is where Prometheus is answered, without TLS, such as ":8080".
	// "0" or nothing answers it nowhere: the other port tells nothing about calls.
	MetricsAddress string
	// DrainPeriod is how long calls are still accepted after the context of Run
	// ended.
	DrainPeriod time.Duration
	// Log receives what goes wrong on connections, and the steps of the shutdown.
	Log logr.Logger
}

// Server serves a Handler over TLS.
type Server struct {
	handler      *Handler
	options      ServerOptions
	certificates *certwatcher.CertWatcher
	http         *http.Server
	// metrics is nil if no one is to ask.
	metrics *http.Server
	// after is time.After, except in tests.
	after func(time.Duration) <-chan time.Time
}

// NewServer returns a Server whose certificate is loaded. It fails if there is
// none yet, or if certificate and key do not belong together.
func NewServer(handler *Handler, options ServerOptions) (*Server, error) {
	certificates, err := certwatcher.New(
		filepath.Join(options.CertificateDirectory, corev1.TLSCertKey),
		filepath.Join(options.CertificateDirectory, corev1.TLSPrivateKeyKey))
	if err != nil {
		return nil, fmt.Errorf("loading the serving certificate from %s: %w", options.CertificateDirectory, err)
	}
	s := &Server{handler: handler, options: options, certificates: certificates, after: time.After}
	s.http = s.newHTTPServer(handler)
	// Sessions are resumed by tickets, which net/http and crypto/tls do by themselves.
	s.http.TLSConfig = &tls.Config{GetCertificate: certificates.GetCertificate}
	pki.RequireModernTLS(s.http.TLSConfig)
	handler.metrics.certificateExpiry = s.certificateExpiry
	handler.ServeFailures(func() (*tls.Certificate, error) { return certificates.GetCertificate(nil) })
	if s.options.MetricsAddress != "" && s.options.MetricsAddress != "0" {
		s.metrics = s.newHTTPServer(handler.metrics.handler())
	}
	return s, nil
}

func (s *Server) newHTTPServer(handler http.Handler) *http.Server {
	// API servers speak HTTP/1.1 to webhooks behind a Service, so nothing is
	// gained from HTTP/2 and its larger surface.
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Server{
		Handler:           handler,
		Protocols:         protocols,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		// Failed handshakes, mostly: scanners, and clients that went away.
		ErrorLog: slog.NewLogLogger(logr.ToSlogHandler(s.options.Log.V(1)), slog.LevelInfo),
	}
}

// certificateExpiry is when the certificate that is served ends, in seconds of Unix time.
func (s *Server) certificateExpiry() float64 {
	certificate, err := s.certificates.GetCertificate(nil)
	if err != nil || certificate == nil || certificate.Leaf == nil {
		return 0
	}
	return float64(certificate.Leaf.NotAfter.Unix())
}

// Run serves until ctx ends, then drains: readiness fails at once, calls are
// answered for the drain period, and those in flight after it are finished.
func (s *Server) Run(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("", strconv.Itoa(s.options.Port)))
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

// serve is Run on its listeners, which it closes. Whichever of its parts fails
// first ends the others.
func (s *Server) serve(ctx context.Context, listener, metrics net.Listener) error {
	// Calls and new certificates are taken until the end of the shutdown, so
	// nothing below ends with ctx itself.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group, running := errgroup.WithContext(running)
	group.Go(func() error { return s.watchCertificates(running) })
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

func (s *Server) watchCertificates(ctx context.Context) error {
	if err := s.certificates.Start(ctx); err != nil {
		return fmt.Errorf("watching the serving certificate in %s: %w", s.options.CertificateDirectory, err)
	}
	return nil
}

func (s *Server) accept(listener net.Listener) error {
	s.options.Log.Info("Serving conversions", "address", listener.Addr().String(), "rulesetHashes", s.handler.hashes)
	if err := s.http.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving conversion requests: %w", err)
	}
	return nil
}

func (s *Server) acceptMetrics(listener net.Listener) error {
	s.options.Log.Info("Serving metrics", "address", listener.Addr().String())
	if err := s.metrics.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving metrics: %w", err)
	}
	return nil
}

// shutDown waits for the end of ctx, drains and closes the server. If another
// part of the server failed, it closes it at once.
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
		// Last, so that the shutdown can be watched. Nothing is lost with a scrape.
		_ = s.metrics.Close()
	}
	if err != nil {
		return fmt.Errorf("finishing the conversions in flight: %w", err)
	}
	return nil
}

func (s *Server) drain(running context.Context) {
	s.handler.Drain()
	s.options.Log.Info("Draining", "period", s.options.DrainPeriod.String())
	select {
	case <-s.after(s.options.DrainPeriod):
	case <-running.Done():
	}
}
