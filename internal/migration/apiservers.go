// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// serverLeases are those that every API server renews. From k8s.io/kubernetes
// pkg/controlplane/apiserver, which names the label.
const serverLeases = "apiserver.kubernetes.io/identity=kube-apiserver"

// APIServers implements Servers: it asks each API server behind the kubernetes
// Service by its own address.
type APIServers struct {
	cluster *Cluster
	config  *rest.Config
	client  kubernetes.Interface
	clock   Clock
}

// APIServers returns the API servers of the cluster.
func (c *Cluster) APIServers() (*APIServers, error) {
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for the addresses of API servers: %w", err)
	}
	return &APIServers{cluster: c, config: c.config, client: client, clock: SystemClock{}}, nil
}

// Addresses implements Servers. Whoever may not read the leases knows of none.
func (s *APIServers) Addresses(ctx context.Context) (addresses []string, leases int, err error) {
	endpoints, err := s.client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{
		LabelSelector: discoveryv1.LabelServiceName + "=kubernetes",
	})
	if err != nil {
		return nil, 0, err
	}
	held, err := s.client.CoordinationV1().Leases(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: serverLeases})
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, 0, err
	}
	if err == nil {
		leases = s.heldNow(held.Items)
	}
	return addressesOf(endpoints.Items), leases, nil
}

// heldNow counts the leases that did not expire.
func (s *APIServers) heldNow(leases []coordinationv1.Lease) int {
	count := 0
	for _, lease := range leases {
		spec := lease.Spec
		if spec.RenewTime == nil || spec.LeaseDurationSeconds == nil {
			continue
		}
		if s.clock.Now().Before(spec.RenewTime.Add(time.Duration(*spec.LeaseDurationSeconds) * time.Second)) {
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

// ServedResourceAt implements Servers. The API server is asked with the same
// credentials, and must prove to be who the configured address belongs to.
func (s *APIServers) ServedResourceAt(ctx context.Context, address string) (*metav1.APIResource, error) {
	config := rest.CopyConfig(s.config)
	if config.ServerName == "" {
		name, err := hostOf(config.Host)
		if err != nil {
			return nil, err
		}
		config.ServerName = name
	}
	config.Host = "https://" + address
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return s.cluster.servedResource(ctx, client)
}

// hostOf is the name or IP of an API server's address, which may be a URL.
func hostOf(address string) (string, error) {
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
