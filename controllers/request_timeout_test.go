// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestRequestTimeout is the longest of all API servers.
func TestRequestTimeout(t *testing.T) {
	serve := func(answer string) string {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/flagz" || r.Header.Get("Accept") != flagsType || answer == "" {
				w.WriteHeader(http.StatusNotAcceptable)
			}
			fmt.Fprint(w, answer)
		}))
		t.Cleanup(server.Close)
		return server.Listener.Addr().String()
	}
	const flags = `{"kind":"Flagz","flags":{"request-timeout":"%s"}}`
	usual, long, short := serve(fmt.Sprintf(flags, "1m0s")), serve(fmt.Sprintf(flags, "5m0s")), serve(fmt.Sprintf(flags, "10s"))
	silent, broken, other := serve(""), serve("kube-apiserver flagz"), serve(`{"flags":{}}`)
	var addresses []string
	timeout := &RequestTimeout{
		config: &rest.Config{Host: "https://example.com", TLSClientConfig: rest.TLSClientConfig{Insecure: true}},
		find:   func(context.Context) ([]string, int, error) { return addresses, len(addresses), nil },
	}
	for _, step := range []struct {
		name      string
		addresses []string
		want      time.Duration
	}{
		{"none", nil, 2 * time.Minute},
		{"none that tells", []string{silent, broken, other}, 2 * time.Minute},
		{"a short one", []string{short}, 2 * time.Minute},
		{"the usual one", []string{usual}, 2 * time.Minute},
		{"a long one besides", []string{usual, long, short}, 10 * time.Minute},
		{"the long one became silent", []string{usual, silent}, 10 * time.Minute},
		{"all tell, and none is long", []string{usual, short}, 2 * time.Minute},
	} {
		addresses = step.addresses
		timeout.Read(t.Context())
		expect.Equal(t, step.name+": the propagation delay", step.want, timeout.PropagationDelay())
	}
}
