// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiservers

import (
	"context"
	"io"
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// Open gets a path that is no resource, such as /metrics, in a media type. Each call has a connection of
// its own: behind one address, it may reach another API server than the one before.
func Open(ctx context.Context, config *rest.Config, path, accept string) (io.ReadCloser, error) {
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	connection, err := newConnection(config)
	if err != nil {
		return nil, err
	}
	client, err := rest.UnversionedRESTClientForConfigAndClient(config, connection)
	if err != nil {
		return nil, err
	}
	return client.Get().AbsPath(path).SetHeader("Accept", accept).Stream(ctx)
}

// newConnection returns a client whose requests have connections of their own.
func newConnection(config *rest.Config) (*http.Client, error) {
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	transport := utilnet.SetTransportDefaults(&http.Transport{TLSClientConfig: tlsConfig, DisableKeepAlives: true})
	if config.Proxy != nil {
		transport.Proxy = config.Proxy
	}
	wrapped, err := rest.HTTPWrappersForConfig(config, transport)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: wrapped, Timeout: config.Timeout}, nil
}
