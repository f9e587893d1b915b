// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"

	"github.com/conversion-operator/conversion-operator/internal/cli/audit"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

const (
	crdsAt     = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	policiesAt = "/apis/conversion-operator.io/v1alpha1/conversionpolicies"
	forbidden  = `403 {"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"not for you","code":403}`
	expired    = `410 {"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","message":"too old","code":410,"metadata":{"continue":"y"}}`
	notFound   = `404 {"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","message":"no such thing","code":404}`
)

// apiServer answers URLs by a table. A method other than GET is an error.
type apiServer struct {
	*httptest.Server
	mu        sync.Mutex
	requested []string
}

func newAPIServer(t *testing.T, answers map[string]string) *apiServer {
	t.Helper()
	server := &apiServer{}
	server.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		expect.Equal(t, "method", http.MethodGet, r.Method)
		server.mu.Lock()
		server.requested = append(server.requested, r.URL.String())
		server.mu.Unlock()
		answer, found := answers[r.URL.String()]
		if !found {
			answer = notFound
		}
		code, body, _ := strings.Cut(answer, " ")
		status := http.StatusOK
		if _, err := fmt.Sscan(code, &status); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(server.Close)
	return server
}

// requests counts the requests whose URL begins with a path.
func (s *apiServer) requests(path string) int {
	n := 0
	for _, url := range s.requested {
		if strings.HasPrefix(url, path) {
			n++
		}
	}
	return n
}

// plainCRD returns a definition with one version, which is deprecated.
func plainCRD(name string) string { return crdWith(name, "") }

func crdWith(name, conversion string) string {
	plural, group, _ := strings.Cut(name, ".")
	return `{"metadata":{"name":"` + name + `","generation":1},"spec":{"group":"` + group + `","names":{"plural":"` + plural + `","kind":"Kind"},` + conversion +
		`"versions":[{"name":"v1","served":true,"storage":true,"deprecated":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]},` +
		`"status":{"storedVersions":["v1"],"conditions":[{"type":"Established","status":"True"}]}}`
}

func list(metadata string, items ...string) string {
	return `200 {"kind":"List","metadata":{` + metadata + `},"items":[` + strings.Join(items, ",") + `]}`
}

func TestAuditOfAPIServer(t *testing.T) {
	const one, found = "a.example.com", "Warning a.example.com DeprecatedVersionServed"
	webhook := `"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"caBundle":"eA==","service":{"namespace":"ns","name":"svc"}}}},`
	// behind answers with a definition whose webhook is behind a Service.
	behind := func(objects, endpoints string) map[string]string {
		return map[string]string{
			crdsAt + "?limit=2":                  list(``, crdWith(one, webhook)),
			"/apis/example.com/v1/a?limit=1":     objects,
			"/api/v1/namespaces/ns/services/svc": `200 {"spec":{"ports":[{"port":443}]}}`,
			endpointsAt("ns", "svc"):             list(``, endpoints),
		}
	}
	for name, test := range map[string]struct {
		answers map[string]string
		options Options
		want    []string
		missed  []audit.NotChecked
		err     string
	}{
		"pages": {
			answers: map[string]string{
				crdsAt + "?limit=2":            list(`"continue":"x","remainingItemCount":1`, plainCRD("b.example.com"), plainCRD(one)),
				crdsAt + "?continue=x&limit=2": list(``, plainCRD("c.example.com")),
			},
			want: []string{found, "Warning b.example.com DeprecatedVersionServed", "Warning c.example.com DeprecatedVersionServed"},
		},
		"a token that expires": {
			answers: map[string]string{
				crdsAt + "?limit=2":            list(`"continue":"x"`, plainCRD(one)),
				crdsAt + "?continue=x&limit=2": expired,
				crdsAt + "?continue=y&limit=2": list(``, plainCRD("c.example.com")),
			},
			want: []string{found, "Warning c.example.com DeprecatedVersionServed"},
		},
		"a token that expires again": {
			answers: map[string]string{
				crdsAt + "?limit=2":            list(`"continue":"x"`, plainCRD(one)),
				crdsAt + "?continue=x&limit=2": expired,
				crdsAt + "?continue=y&limit=2": expired,
			},
			err: "list CustomResourceDefinitions: too old",
		},
		"no right to list":           {answers: map[string]string{crdsAt + "?limit=2": forbidden}, err: "list CustomResourceDefinitions: not for you"},
		"a name":                     {answers: map[string]string{crdsAt + "/" + one: "200 " + plainCRD(one)}, options: Options{Names: []string{one}}, want: []string{found}},
		"a name that does not exist": {options: Options{Names: []string{one}}, err: "the cluster has no CustomResourceDefinition a.example.com: name it <plural>.<group>, for example crontabs.example.com"},
		"the name of a new definition": {
			options: Options{Names: []string{one}, Next: map[string]*apiextensionsv1.CustomResourceDefinition{one: {}}},
		},
		"no right to see policies": {
			answers: map[string]string{crdsAt + "?limit=2": list(``, plainCRD(one)), policiesAt: forbidden},
			want:    []string{found}, missed: []audit.NotChecked{{What: "ConversionPolicies", Why: "not for you"}},
		},
		"a policy alone": {
			answers: map[string]string{crdsAt + "?limit=2": list(``), policiesAt: list(``, `{"metadata":{"name":"z.example.com"}}`)},
			want:    []string{"Warning z.example.com PolicyWithoutDefinition"},
		},
		"a policy alone, and a name": {
			answers: map[string]string{crdsAt + "/" + one: "200 " + plainCRD(one), policiesAt: list(``, `{"metadata":{"name":"z.example.com"}}`)},
			options: Options{Names: []string{one}}, want: []string{found},
		},
		"a policy that is not ready": {
			answers: map[string]string{crdsAt + "?limit=2": list(``, plainCRD(one)), policiesAt: list(``, `{"metadata":{"name":"a.example.com"}}`)},
			want:    []string{found, "Warning a.example.com PolicyNotReady"},
		},
		"a migration that was repeated": {
			answers: map[string]string{
				crdsAt + "?limit=2": list(``, plainCRD(one)),
				"/apis/storagemigration.k8s.io/v1/storageversionmigrations": list(``,
					`{"metadata":{"name":"a"},"spec":{"resource":{"group":"example.com","resource":"a"}},"status":{"conditions":[{"type":"Failed","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`,
					`{"metadata":{"name":"b"},"spec":{"resource":{"group":"example.com","resource":"a"}},"status":{"conditions":[{"type":"Succeeded","status":"True","lastTransitionTime":"2026-01-02T00:00:00Z"}]}}`),
			},
			want: []string{found},
		},
		"an older kind of migration": {
			answers: map[string]string{
				crdsAt + "?limit=2": list(``, plainCRD(one)),
				"/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations": list(``,
					`{"metadata":{"name":"m"},"spec":{"resource":{"group":"example.com","resource":"a"}},"status":{"conditions":[{"type":"Failed","status":"True"}]}}`),
			},
			want: []string{found, "Warning a.example.com PrunedAfterFailure"},
		},
		"no right to see Services": {
			answers: map[string]string{crdsAt + "?limit=2": list(``, crdWith(one, webhook)), "/api/v1/namespaces/ns/services/svc": forbidden},
			options: Options{NoReads: true},
			want:    []string{"Error a.example.com CABundleInvalid", found},
			missed:  []audit.NotChecked{{CRD: one, What: "Service ns/svc", Why: "not for you"}},
		},
		"no right to read objects": {
			answers: behind(forbidden, `{"endpoints":[{"conditions":{"ready":false}},{"conditions":{"ready":true}}]}`),
			want:    []string{"Error a.example.com CABundleInvalid", found},
			missed:  []audit.NotChecked{{CRD: one, What: "objects at v1", Why: "not for you"}},
		},
		"an overloaded API server": {
			answers: behind(`429 {"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","message":"later","code":429}`, `{"endpoints":[{}]}`),
			want:    []string{"Error a.example.com CABundleInvalid", found},
			missed:  []audit.NotChecked{{CRD: one, What: "objects at v1", Why: "later"}},
		},
		"a cache that waits for a converter": {
			answers: behind(`429 {"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","message":"storage is initializing: conversion webhook for example.com/v0, Kind=Kind failed: connection refused","code":429}`, `{"endpoints":[{}]}`),
			want:    []string{"Error a.example.com CABundleInvalid", "Error a.example.com ConversionFails", found},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := newAPIServer(t, test.answers)
			options := test.options
			options.AtOnce, options.Threshold, options.Now, options.Progress = 2, audit.SeverityNote, time.Now(), func(int, int) {}
			report, err := Audit(t.Context(), &rest.Config{Host: server.URL}, options)
			if text := fmt.Sprint(err); err != nil && text != test.err || err == nil && test.err != "" {
				t.Fatalf("error is %v, want %q", err, test.err)
			}
			if err != nil {
				return
			}
			var got []string
			for _, finding := range report.Findings {
				got = append(got, fmt.Sprintf("%s %s %s", finding.Severity, finding.CRD, finding.ID))
			}
			expect.Equal(t, "findings", test.want, got)
			expect.Equal(t, "not checked", test.missed, report.NotChecked)
		})
	}
}

func endpointsAt(namespace, service string) string {
	return "/apis/discovery.k8s.io/v1/namespaces/" + namespace + "/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3D" + service
}

// TestFewRequests checks that the audit reads a Service once for many definitions, and no
// objects of definitions that never changed.
func TestFewRequests(t *testing.T) {
	const webhook = `"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"service":{"namespace":"ns","name":"svc"}}}},`
	var items []string
	for i := range 20 {
		items = append(items, crdWith(fmt.Sprintf("a%02d.example.com", i), webhook), plainCRD(fmt.Sprintf("b%02d.example.com", i)))
	}
	server := newAPIServer(t, map[string]string{crdsAt + "?limit=4": list(`"remainingItemCount":0`, items...)})
	var done []int
	report, err := Audit(t.Context(), &rest.Config{Host: server.URL}, Options{
		AtOnce: 4, Threshold: audit.SeverityError, Now: time.Now(), Progress: func(n, of int) {
			if done = append(done, n); of != len(items) {
				t.Errorf("%d of %d", n, of)
			}
		},
	})
	expect.NoError(t, err)
	expect.Equal(t, "reads of the Service", 1, server.requests("/api/v1/namespaces/ns/services/svc"))
	expect.Equal(t, "reads of objects whose definition never changed", 0, server.requests("/apis/example.com/v1/b"))
	if report.Definitions != len(items) || len(done) != len(items) || !slices.IsSorted(done) || report.Count(audit.SeverityError) != 20 {
		t.Errorf("%d definitions, progress %v, %d errors", report.Definitions, done, report.Count(audit.SeverityError))
	}
}

func TestAddressOf(t *testing.T) {
	port, url, withPort := int32(8443), "https://example.org/convert", "https://example.org:9443"
	for name, test := range map[string]struct {
		config        apiextensionsv1.WebhookClientConfig
		address, name string
	}{
		"a Service":            {apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: "ns", Name: "svc"}}, "svc.ns.svc:443", "svc.ns.svc"},
		"a Service and a port": {apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: "ns", Name: "svc", Port: &port}}, "svc.ns.svc:8443", "svc.ns.svc"},
		"a URL":                {apiextensionsv1.WebhookClientConfig{URL: &url}, "example.org:443", "example.org"},
		"a URL and a port":     {apiextensionsv1.WebhookClientConfig{URL: &withPort}, "example.org:9443", "example.org"},
		"neither":              {apiextensionsv1.WebhookClientConfig{}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			address, server := addressOf(&test.config)
			expect.Equal(t, "address and server", []string{test.address, test.name}, []string{address, server})
		})
	}
}
