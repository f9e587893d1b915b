// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converters

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"
)

// loopback is the address on which forwarded ports are open.
const loopback = "127.0.0.1"

// forward is an open port of this machine whose connections go to a port of a pod, through the API server.
type forward struct {
	port   uint16
	cancel context.CancelFunc
	// ended is closed when the forward has ended, with err set before.
	ended chan struct{}
	err   error
	log   *lastError
}

func startForward(ctx context.Context, config *rest.Config, namespace, pod string, port int32) (*forward, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	dialer, err := dialerFor(config, base.JoinPath("api", "v1", "namespaces", namespace, "pods", pod, "portforward"))
	if err != nil {
		return nil, err
	}
	f := &forward{ended: make(chan struct{}), log: &lastError{}}
	ctx, f.cancel = context.WithCancel(ctx)
	ready := make(chan struct{})
	forwarder, err := portforward.NewOnAddressesForStreamingWithContext(klog.NewContext(ctx, logr.New(f.log)), dialer,
		[]string{loopback}, []string{fmt.Sprintf("0:%d", port)}, ready, io.Discard, io.Discard)
	if err != nil {
		f.cancel()
		return nil, err
	}
	go func() {
		f.err = forwarder.ForwardPorts()
		close(f.ended)
	}()
	select {
	case <-f.ended:
		f.cancel()
		if f.err != nil && strings.Contains(f.err.Error(), "forbidden") {
			return nil, fmt.Errorf("%w; the command needs the right to create pods/portforward in the namespace %s", f.err, namespace)
		}
		return nil, f.err
	case <-ctx.Done():
		f.cancel()
		return nil, ctx.Err()
	case <-ready:
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		f.close()
		return nil, err
	}
	f.port = ports[0].Local
	return f, nil
}

// dialerFor connects by a WebSocket like kubectl, and by SPDY where a proxy or an API server does not support that.
func dialerFor(config *rest.Config, target *url.URL) (httpstream.Dialer, error) {
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	socket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(target, config)
	if err != nil {
		return nil, err
	}
	plain := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, target)
	return portforward.NewFallbackDialerForStreaming(socket, plain, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}

// close ends the forward, and waits for that.
func (f *forward) close() {
	f.cancel()
	<-f.ended
}

// problemDelay bounds how long problem waits for the end of a forward: it ends after a connection through it fails.
const problemDelay = time.Second

// problem returns why the forward failed, nil if it did not.
func (f *forward) problem() error {
	select {
	case <-f.ended:
	case <-time.After(problemDelay):
		return f.log.get()
	}
	return cmp.Or(f.log.get(), f.err)
}

// lastError is a log that only has its last error.
type lastError struct {
	lock sync.Mutex
	err  error
}

func (l *lastError) get() error {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.err
}

// Init, Enabled, Info, Error, WithValues and WithName implement logr.LogSink.
func (l *lastError) Init(logr.RuntimeInfo)    {}
func (l *lastError) Enabled(int) bool         { return false }
func (l *lastError) Info(int, string, ...any) {}
func (l *lastError) Error(err error, message string, _ ...any) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.err = fmt.Errorf("%s", message); err != nil {
		l.err = fmt.Errorf("%s: %w", message, err)
	}
}
func (l *lastError) WithValues(...any) logr.LogSink { return l }
func (l *lastError) WithName(string) logr.LogSink   { return l }
