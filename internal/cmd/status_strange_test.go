// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// serverOfPolicies answers lists of policies with the items, and refuses watches.
func serverOfPolicies(t *testing.T, items string) string {
	t.Helper()
	answers := map[string]string{
		"/api":  `{"kind": "APIVersions", "versions": ["v1"]}`,
		"/apis": `{"kind": "APIGroupList", "groups": [{"name": "conversion-operator.io", "versions": [{"groupVersion": "conversion-operator.io/v1alpha1", "version": "v1alpha1"}]}]}`,
		"/apis/conversion-operator.io/v1alpha1": `{"kind": "APIResourceList", "groupVersion": "conversion-operator.io/v1alpha1",
			"resources": [{"name": "conversionpolicies", "kind": "ConversionPolicy", "verbs": ["get", "list", "watch"]}]}`,
		"/apis/conversion-operator.io/v1alpha1/conversionpolicies": `{"kind": "ConversionPolicyList", "apiVersion": "conversion-operator.io/v1alpha1", "metadata": {"resourceVersion": "5"}, "items": [` + items + `]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, found := answers[r.URL.Path]
		switch {
		case r.URL.Query().Has("watch"):
			w.WriteHeader(http.StatusForbidden)
			answer = `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "jane cannot watch conversionpolicies"}`
		case !found:
			w.WriteHeader(http.StatusNotFound)
			answer = `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`
		}
		_, err := w.Write([]byte(answer))
		expect.NoError(t, err)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

const policyWithoutStatus = `{"apiVersion": "conversion-operator.io/v1alpha1", "kind": "ConversionPolicy", "metadata": {"name": "crontabs.example.com", "resourceVersion": "5"}, "spec": {}}`

// TestStatusOfNoPolicies: programs can read the output also if there is no policy.
func TestStatusOfNoPolicies(t *testing.T) {
	for form, want := range map[string]string{
		formTable: "", formWide: "",
		formJSON: "{\n  \"format\": 1,\n  \"policies\": []\n}\n",
		formYAML: "format: 1\npolicies: []\n",
	} {
		stdout, stderr, err := run("status", "--server", serverOfPolicies(t, ""), "-o", form)
		if diff := cmp.Diff(want, stdout); diff != "" || err != nil || stderr != "No ConversionPolicies found.\n" {
			t.Errorf("%s: %v, stderr %q, stdout (-want +got):\n%s", form, err, stderr, diff)
		}
	}
}

// TestStatusWithoutGates: lists are lists, also before the operator has seen a policy.
func TestStatusWithoutGates(t *testing.T) {
	stdout, stderr, err := run("status", "--server", serverOfPolicies(t, policyWithoutStatus), "-o", "json")
	if err != nil || !strings.Contains(stdout, `"gates": [],`) {
		t.Errorf("%v, stderr %q; gates are no list:\n%s", err, stderr, stdout)
	}
}

// TestStatusWithoutTheRightToWatch: the command says that it cannot follow, and does not wait for ever.
func TestStatusWithoutTheRightToWatch(t *testing.T) {
	for _, follow := range []string{"--watch", "--until-ready"} {
		stdout, stderr, err := run("status", "--server", serverOfPolicies(t, policyWithoutStatus), follow)
		if ExitCode(err) != 2 || !strings.Contains(stderr, "Error: watch ConversionPolicies: ") || !strings.Contains(stderr, "jane cannot watch conversionpolicies") || !strings.Contains(stdout, "NotSeen") {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", follow, ExitCode(err), stdout, stderr)
		}
	}
}

// TestStatusOfAnAPIServerThatRestarts: the command says that it sees no changes, and when it does again.
func TestStatusOfAnAPIServerThatRestarts(t *testing.T) {
	target, err := url.Parse(serverOfPolicies(t, policyWithoutStatus))
	expect.NoError(t, err)
	proxy, watches := httputil.NewSingleHostReverseProxy(target), atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !r.URL.Query().Has("watch") {
			proxy.ServeHTTP(w, r)
			return
		}
		switch watches.Add(1) {
		case 1, 2:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, err := w.Write([]byte(`{"type": "ADDED", "object": ` + strings.Replace(policyWithoutStatus, `"5"}`, `"6", "generation": 1}, "status": `+
				`{"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True", "reason": "Succeeded", "observedGeneration": 1}]}`, 1) + "}\n" +
				`{"type": "BOOKMARK", "object": {"kind": "ConversionPolicy", "apiVersion": "conversion-operator.io/v1alpha1", "metadata": {"resourceVersion": "6", "annotations": {"k8s.io/initial-events-end": "true"}}}}` + "\n"))
			expect.NoError(t, err)
			expect.NoError(t, http.NewResponseController(w).Flush())
			<-r.Context().Done()
		}
	}))
	t.Cleanup(server.Close)
	stdout, stderr, err := run("status", "--server", server.URL, "--until-ready", "--timeout=2m")
	down, up := strings.Index(stderr, "The API server does not answer, so changes are not seen until it does: "), strings.Index(stderr, "The API server answers again.")
	if err != nil || down < 0 || up < down || strings.Count(stderr, "answer") != 2 {
		t.Errorf("%v, stdout %q, stderr %q", err, stdout, stderr)
	}
}
