// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiservers finds the API servers of a cluster, and reaches each by its own address.
package apiservers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// serverLeases selects the leases of API servers. From k8s.io/kubernetes
// pkg/controlplane/apiserver.
const serverLeases = "apiserver.kubernetes.io/identity=kube-apiserver"

// Find returns the addresses of the API servers behind the Service kubernetes, as host:port, and how
// many API servers hold a lease. More leases than addresses mean that one address stands for several API
// servers. It fails without leases, or without the right to read one of both: each alone may miss API
// servers.
func Find(ctx context.Context, client kubernetes.Interface, now time.Time) (addresses []string, leases int, err error) {
	endpoints, err := client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{
		LabelSelector: discoveryv1.LabelServiceName + "=kubernetes",
	})
	if err != nil {
		return nil, 0, err
	}
	list, err := client.CoordinationV1().Leases(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: serverLeases})
	if err != nil {
		return nil, 0, err
	}
	addresses, leases = addressesOf(endpoints.Items), active(list.Items, now)
	if leases == 0 {
		return addresses, 0, errNoLeases
	}
	return addresses, leases, nil
}

// errNoLeases says that the leases count nothing: the API servers hold none, or the clock of this
// process is wrong.
var errNoLeases = errors.New("no API server holds a lease that is still valid, so it is unknown how many there are")

// active counts the leases that have not expired.
func active(leases []coordinationv1.Lease, now time.Time) int {
	count := 0
	for _, lease := range leases {
		spec := lease.Spec
		if spec.RenewTime == nil || spec.LeaseDurationSeconds == nil {
			continue
		}
		if now.Before(spec.RenewTime.Add(time.Duration(*spec.LeaseDurationSeconds) * time.Second)) {
			count++
		}
	}
	return count
}

func addressesOf(endpoints []discoveryv1.EndpointSlice) []string {
	var addresses []string
	for _, slice := range endpoints {
		for _, port := range slice.Ports {
			if port.Port == nil {
				continue
			}
			for _, endpoint := range slice.Endpoints {
				for _, address := range endpoint.Addresses {
					addresses = append(addresses, net.JoinHostPort(address, strconv.Itoa(int(*port.Port))))
				}
			}
		}
	}
	slices.Sort(addresses)
	return slices.Compact(addresses)
}

// At returns the configuration for the API server at one address, with the same credentials. It verifies
// the certificate for the configured host name.
func At(config *rest.Config, address string) (*rest.Config, error) {
	config = rest.CopyConfig(config)
	if config.ServerName == "" {
		name, err := HostOf(config.Host)
		if err != nil {
			return nil, err
		}
		config.ServerName = name
	}
	config.Host = "https://" + address
	return config, nil
}

// HostOf returns the host name or IP address of an API server address, which may be a URL.
func HostOf(address string) (string, error) {
	parsed, err := url.Parse(address)
	if err == nil && parsed.Hostname() != "" {
		return parsed.Hostname(), nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("the address %q of the API server has no host: %w", address, err)
	}
	return host, nil
}

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
