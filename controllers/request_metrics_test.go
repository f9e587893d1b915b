// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
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
	metrics := &requestMetricsReader{config: &rest.Config{Host: server.URL}, now: func() time.Time { return now }}
	ask := func() observed.BackgroundCheck {
		return metrics.requests(t.Context(), step.ReadRequests{Group: "example.com", Resource: "crontabs"})
	}
	want := observed.BackgroundCheck{Requests: &observed.Requests{Server: "1795123456", Counts: map[string]int64{"v1": 40, "v1beta1": 3, "v1alpha1": 1}}}
	for range 2 {
		if diff := cmp.Diff(want, ask()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	}
	if looks.Load() != 1 {
		t.Errorf("%d looks, want one for all policies", looks.Load())
	}
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
	if err == nil {
		t.Error("counts of no server are taken")
	}
}
