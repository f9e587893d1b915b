// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

const someMetrics = `# HELP apiserver_request_total [STABLE] Counter of apiserver requests
apiserver_request_total{code="200",component="apiserver",dry_run="",group="example.com",resource="crontabs",scope="cluster",subresource="",verb="LIST",version="v1"} 40
apiserver_request_total{code="200",component="apiserver",dry_run="",group="example.com",resource="crontabs",scope="cluster",subresource="",verb="LIST",version="v1beta1"} 2
apiserver_request_total{code="404",component="apiserver",dry_run="",group="example.com",resource="crontabs",scope="cluster",subresource="",verb="GET",version="v1beta1"} 1
apiserver_request_total{code="200",component="apiserver",dry_run="",group="other.com",resource="crontabs",scope="cluster",subresource="",verb="LIST",version="v7"} 9
apiserver_requested_deprecated_apis{group="example.com",removed_release="",resource="crontabs",subresource="",version="v1beta1"} 1
apiserver_requested_deprecated_apis{group="example.com",removed_release="",resource="crontabs",subresource="status",version="v1alpha1"} 1
apiserver_request_totals{group="example.com",resource="crontabs",version="v8"} 1
process_start_time_seconds 1.79512345678e+09
`

func TestRequestMetrics(t *testing.T) {
	var looks, status atomic.Int64
	status.Store(http.StatusOK)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		looks.Add(1)
		w.WriteHeader(int(status.Load()))
		if _, err := w.Write([]byte(someMetrics)); err != nil || r.URL.Path != "/metrics" {
			t.Errorf("path %s, error %v", r.URL.Path, err)
		}
	}))
	defer server.Close()
	now := time.Unix(0, 0)
	uncounted := func(context.Context) ([]string, int, error) { return nil, 0, errors.New("forbidden") }
	metrics := &requestMetricsReader{config: &rest.Config{Host: server.URL}, find: uncounted, now: func() time.Time { return now }}
	ask := func() observed.BackgroundCheck {
		return metrics.requests(t.Context(), step.ReadRequests{Group: "example.com", Resource: "crontabs"})
	}
	want := observed.BackgroundCheck{Requests: &observed.Requests{
		Servers: []observed.ServerRequests{{Started: 1795123456, Counts: map[string]int64{"v1": 40, "v1beta1": 3, "v1alpha1": 1}}},
		Missed:  "the API servers cannot be counted: forbidden",
	}}
	for range 2 {
		expect.Equal(t, "requests", want, ask())
	}
	expect.Equal(t, "looks", 1, looks.Load())
	now = now.Add(metricsAge / 2)
	if got := metrics.requests(t.Context(), step.ReadRequests{Since: now}); got.Requests == nil || looks.Load() != 2 {
		t.Errorf("%d looks, want another where later counts are asked for: %+v", looks.Load(), got)
	}
	now = now.Add(2 * metricsAge)
	status.Store(http.StatusForbidden)
	if got := ask(); got.Requests != nil || !strings.Contains(got.Message, "may not get /metrics") {
		t.Errorf("where it is forbidden: %+v", got)
	}
	status.Store(http.StatusInternalServerError)
	if got := ask(); got.Requests != nil || got.Reason == "" {
		t.Errorf("where it fails: %+v", got)
	}
}

func TestCountRequestsKnowsItsServer(t *testing.T) {
	_, _, err := countRequests(strings.NewReader(strings.ReplaceAll(someMetrics, startGauge, "something_else")))
	expect.Equal(t, "counts of no server are refused", true, err != nil)
}

// TestMetricsOfEachServer reads those of API servers at addresses of their own, and of several behind
// one.
func TestMetricsOfEachServer(t *testing.T) {
	// serve starts an address that stands for API servers, which answer its connections in turn.
	serve := func(starts ...int) string {
		var next atomic.Int64
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			start := starts[int(next.Add(1)-1)%len(starts)]
			fmt.Fprintf(w, "%s{group=\"example.com\",resource=\"crontabs\",version=\"v1\"} %d\n%s %d\n", requestCounter, start, startGauge, start)
		}))
		t.Cleanup(server.Close)
		return server.Listener.Addr().String()
	}
	one, two, balancer := serve(1), serve(2), serve(3, 3, 4, 5)
	cases := map[string]struct {
		addresses []string
		leases    int
		want      []int64
		missed    string
	}{
		"one":                          {[]string{one}, 1, []int64{1}, ""},
		"two":                          {[]string{one, two}, 2, []int64{1, 2}, ""},
		"behind one address":           {[]string{balancer}, 3, []int64{3, 4, 5}, ""},
		"more than answer":             {[]string{balancer}, 4, []int64{3, 4, 5}, "3 of 4 API servers answered"},
		"one is unreachable":           {[]string{one, "127.0.0.1:1"}, 2, []int64{1}, "1 of 2 API servers answered: reading /metrics of the API server: Get \"https://127.0.0.1:1/metrics\": "},
		"only the configured address":  {[]string{"127.0.0.1:1"}, 1, []int64{2}, ""},
		"one of two, as it turned out": {[]string{"127.0.0.1:1", "127.0.0.1:2"}, 2, []int64{2}, "1 of 2 API servers answered"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			config := &rest.Config{Host: "https://" + two, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
			find := func(context.Context) ([]string, int, error) { return c.addresses, c.leases, nil }
			metrics := &requestMetricsReader{config: config, find: find, now: time.Now}
			got := metrics.requests(t.Context(), step.ReadRequests{Group: "example.com", Resource: "crontabs"})
			if got.Requests == nil {
				t.Fatalf("nothing was read: %s", got.Message)
			}
			var servers []int64
			for _, server := range got.Requests.Servers {
				servers = append(servers, server.Started)
				expect.Equal(t, "count of the server at v1", server.Started, server.Counts["v1"])
			}
			expect.Equal(t, "servers", c.want, servers)
			if missed := got.Requests.Missed; !strings.HasPrefix(missed, c.missed) || c.missed == "" && missed != "" {
				t.Errorf("missed is %q, want %q", missed, c.missed)
			}
		})
	}
}
