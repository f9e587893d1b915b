// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/conversion-operator/conversion-operator/internal/operator/apiservers"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// A retry by the client would be sent without a new check of the definition.
func TestPatchIsNotRetriedByTheClient(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		expect.Equal(t, "request", "PATCH /apis/example.com/v1/namespaces/ns/crontabs/a", r.Method+" "+r.URL.Path)
		requests.Add(1)
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer server.Close()
	cluster, err := Connect(&rest.Config{Host: server.URL}, &testSpec)
	expect.NoError(t, err)
	_, err = cluster.Patch(t.Context(), Patch{Namespace: "ns", Name: "a", Body: []byte("{}")})
	seconds, _ := apierrors.SuggestsClientDelay(err)
	expect.Equal(t, "requests and seconds to wait", []int{1, 7}, []int{int(requests.Load()), seconds})
}

func endpoints(port int32, addresses ...string) discoveryv1.EndpointSlice {
	slice := discoveryv1.EndpointSlice{Ports: []discoveryv1.EndpointPort{{Port: &port}}}
	for _, address := range addresses {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}})
	}
	return slice
}

func heldUntil(t time.Time) coordinationv1.Lease {
	renewed := metav1.NewMicroTime(t.Add(-time.Hour))
	return coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &renewed, LeaseDurationSeconds: new(int32(3600))}}
}

func TestAddressesOfAPIServers(t *testing.T) {
	clock := newFakeClock()
	slices := discoveryv1.EndpointSliceList{Items: []discoveryv1.EndpointSlice{
		endpoints(6443, "10.0.0.2", "10.0.0.1"), endpoints(6443, "10.0.0.1"), endpoints(443, "fd00::1"), {Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.9"}}}},
	}}
	leases := coordinationv1.LeaseList{Items: []coordinationv1.Lease{heldUntil(clock.now.Add(time.Minute)), heldUntil(clock.now.Add(-time.Minute)), {}}}
	tests := map[string]struct {
		leases     int
		slices     int
		ahead      time.Duration
		wantLeases int
		wantError  string
	}{
		"all readable":             {http.StatusOK, http.StatusOK, 0, 1, ""},
		"leases may not be read":   {http.StatusForbidden, http.StatusOK, 0, 0, "unknown"},
		"addresses may not":        {http.StatusOK, http.StatusForbidden, 0, 0, "unknown"},
		"leases cannot be read":    {http.StatusTeapot, http.StatusOK, 0, 0, "status code 418"},
		"addresses cannot be read": {http.StatusOK, http.StatusTeapot, 0, 0, "status code 418"},
		"our clock is ahead":       {http.StatusOK, http.StatusOK, time.Hour, 0, "no API server holds a lease"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answer, code := any(slices), tt.slices
				if r.URL.Path == "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases" {
					answer, code = leases, tt.leases
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(code)
				if code == http.StatusOK {
					_ = json.NewEncoder(w).Encode(answer)
				}
			}))
			defer server.Close()
			cluster, err := Connect(&rest.Config{Host: server.URL}, &testSpec)
			expect.NoError(t, err)
			cluster.clock = &fakeClock{now: clock.now.Add(tt.ahead)}
			addresses, held, err := cluster.Addresses(t.Context())
			if tt.wantError != "" {
				wantError(t, err, tt.wantError)
				return
			}
			expect.NoError(t, err)
			expect.Equal(t, "addresses", []string{"10.0.0.1:6443", "10.0.0.2:6443", "[fd00::1]:443"}, addresses)
			expect.Equal(t, "leases", tt.wantLeases, held)
		})
	}
}

func TestHostOf(t *testing.T) {
	tests := map[string]struct{ address, want, fails string }{
		"URL":            {address: "https://10.96.0.1:443", want: "10.96.0.1"},
		"URL of a name":  {address: "https://api.example.com/prefix", want: "api.example.com"},
		"URL of IPv6":    {address: "https://[fd00::1]:443", want: "fd00::1"},
		"host and port":  {address: "10.96.0.1:443", want: "10.96.0.1"},
		"IPv6 and port":  {address: "[fd00::1]:443", want: "fd00::1"},
		"nothing at all": {address: "", fails: `the address "" of the API server has no host`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := apiservers.HostOf(tt.address)
			if tt.fails != "" {
				wantError(t, err, tt.fails)
			} else if err != nil || got != tt.want {
				t.Errorf("apiservers.HostOf(%q) = %q, %v, want %q", tt.address, got, err, tt.want)
			}
		})
	}
}
