// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"net/http"
	"net/http/httptest"
	"strings"
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
