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

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// serverOfPolicies is an API server with a policy or none.
func serverOfPolicies(t *testing.T, policy string) string {
	t.Helper()
	const version = "conversion-operator.io/v1alpha1"
	return (&apiServer{T: t, objects: map[string]string{
		"/apis":            "{kind: APIGroupList, groups: [{name: conversion-operator.io, versions: [{groupVersion: " + version + ", version: v1alpha1}]}]}",
		"/apis/" + version: "{kind: APIResourceList, groupVersion: " + version + ", resources: [{name: conversionpolicies, kind: ConversionPolicy, verbs: [get, list, watch]}]}",
		"/apis/" + version + "/conversionpolicies": "{kind: ConversionPolicyList, apiVersion: " + version + ", metadata: {resourceVersion: '5'}, items: [" + policy + "]}",
	}}).start()
}

const policyWithoutStatus = `{"apiVersion": "conversion-operator.io/v1alpha1", "kind": "ConversionPolicy", "metadata": {"name": "crontabs.example.com", "resourceVersion": "5"}, "spec": {}}`

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
