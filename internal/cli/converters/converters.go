// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package converters reaches the conversion webhook that a CustomResourceDefinition names from outside of the
// cluster: a URL directly, and a Service by a port-forward to one of its pods. Callers verify its
// certificate as API servers do.
package converters

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/utils/ptr"
)

// Webhook is where a conversion webhook answers.
type Webhook struct {
	// Name describes it for messages.
	Name string
	// URL is where to ask it, and ServerName the name that its certificate must be valid for, empty for the host of the
	// URL. CABundle has the authorities in PEM, nil for those of the system.
	URL, ServerName string
	CABundle        []byte

	forward *forward
}

// Reach makes the conversion webhook of a CustomResourceDefinition available until Close, or until ctx ends. The error
// says what is missing: a webhook, its Service, a ready pod, or a right.
func Reach(ctx context.Context, config *rest.Config, crd *apiextensionsv1.CustomResourceDefinition) (*Webhook, error) {
	conversion := crd.Spec.Conversion
	if conversion == nil || conversion.Strategy != apiextensionsv1.WebhookConverter || conversion.Webhook == nil || conversion.Webhook.ClientConfig == nil {
		return nil, fmt.Errorf("%s has no conversion webhook: its spec.conversion.strategy is not Webhook", crd.Name)
	}
	named := conversion.Webhook.ClientConfig
	found := &Webhook{CABundle: named.CABundle}
	if len(named.CABundle) == 0 {
		found.CABundle = nil
	}
	switch {
	case named.URL != nil:
		found.Name, found.URL = *named.URL, *named.URL
		return found, nil
	case named.Service == nil:
		return nil, fmt.Errorf("%s has neither a URL nor a Service in spec.conversion.webhook.clientConfig", crd.Name)
	}
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create a client: %w", err)
	}
	service := named.Service
	found.Name = "Service " + service.Namespace + "/" + service.Name
	found.ServerName = service.Name + "." + service.Namespace + ".svc"
	pod, port, err := findPod(ctx, api, service)
	if err != nil {
		return nil, fmt.Errorf("%s, which %s names for its conversion webhook, %w", found.Name, crd.Name, err)
	}
	if found.forward, err = startForward(ctx, config, service.Namespace, pod, port); err != nil {
		return nil, fmt.Errorf("%s, which %s names for its conversion webhook: forward to port %d of pod %s: %w", found.Name, crd.Name, port, pod, err)
	}
	path := ""
	if service.Path != nil {
		path = "/" + strings.TrimPrefix(*service.Path, "/")
	}
	found.URL = "https://" + net.JoinHostPort(loopback, strconv.Itoa(int(found.forward.port))) + path
	return found, nil
}

// Close ends the port-forward.
func (w *Webhook) Close() {
	if w.forward != nil {
		w.forward.close()
	}
}

// Problem returns why the port-forward failed, nil if it did not.
func (w *Webhook) Problem() error {
	if w.forward == nil {
		return nil
	}
	return w.forward.problem()
}

// findPod returns a ready pod of a Service, and the port that it listens on. Its error continues a sentence about the
// Service.
func findPod(ctx context.Context, api kubernetes.Interface, named *apiextensionsv1.ServiceReference) (pod string, port int32, err error) {
	wanted := ptr.Deref(named.Port, 443)
	service, err := api.CoreV1().Services(named.Namespace).Get(ctx, named.Name, metav1.GetOptions{})
	if err != nil {
		return "", 0, unreadable(err)
	}
	i := slices.IndexFunc(service.Spec.Ports, func(port corev1.ServicePort) bool { return port.Port == wanted })
	if i < 0 {
		return "", 0, fmt.Errorf("has no port %d: correct spec.conversion.webhook.clientConfig.service.port", wanted)
	}
	list, err := api.DiscoveryV1().EndpointSlices(named.Namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + named.Name})
	if err != nil {
		return "", 0, unreadable(err)
	}
	if pod, port = readyPod(list.Items, service.Spec.Ports[i].Name); pod == "" {
		return "", 0, fmt.Errorf("has no ready pod for its port %d: start the webhook, or ask it at another place with its URL", wanted)
	}
	return pod, port, nil
}

func unreadable(err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("is not in the cluster: %w", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("cannot be read: %w; the command needs the rights to get services, to list endpointslices and to create pods/portforward in this namespace", err)
	}
	return fmt.Errorf("cannot be read: %w", err)
}

// readyPod returns the first ready pod, in the order of names, empty if there is none.
func readyPod(all []discoveryv1.EndpointSlice, portName string) (pod string, port int32) {
	for _, slice := range all {
		i := slices.IndexFunc(slice.Ports, func(port discoveryv1.EndpointPort) bool {
			return port.Port != nil && (port.Name == nil && portName == "" || port.Name != nil && *port.Name == portName)
		})
		for _, endpoint := range slice.Endpoints {
			isReady := endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready
			isPod := endpoint.TargetRef != nil && endpoint.TargetRef.Kind == "Pod"
			if i >= 0 && isReady && isPod && (pod == "" || endpoint.TargetRef.Name < pod) {
				pod, port = endpoint.TargetRef.Name, *slice.Ports[i].Port
			}
		}
	}
	return pod, port
}

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

// lastError is a log that only has its last error, without those of copying if there is another one: what the kubelet says
// explains them, and comes before or after them.
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
	if l.err != nil && strings.HasPrefix(message, "Error copying ") {
		return
	}
	if l.err = fmt.Errorf("%s", message); err != nil {
		l.err = fmt.Errorf("%s: %w", message, err)
	}
}
func (l *lastError) WithValues(...any) logr.LogSink { return l }
func (l *lastError) WithName(string) logr.LogSink   { return l }
