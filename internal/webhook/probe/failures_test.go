// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/webhook"
	"github.com/conversion-operator/conversion-operator/internal/webhook/internal/testca"
)

const crontabs = "crontabs.example.com"

// failing returns a real pod in which a conversion of an API server has failed.
func failing(t *testing.T) *pod {
	t.Helper()
	return newPod(t, func(_ *testca.Authority, p *pod) {
		handler := webhook.NewHandler([]webhook.Ruleset{
			{CRD: crontabs, Group: "example.com", Hash: "abc", Converter: toVersion{}},
			{CRD: "jobs.example.org", Group: "example.org", Hash: "def", Converter: toVersion{}},
		}, webhook.HandlerOptions{Log: logr.Discard()})
		served := p.leaf.TLS(t)
		handler.ServeFailures(func() *tls.Certificate { return &served })
		body := encodeReview("1", "v1", "example.com/v2", [][]byte{[]byte(original)})
		request := httptest.NewRequest(http.MethodPost, webhook.ConvertPath+"/abc", strings.NewReader(string(body)))
		request.Header.Set("Content-Type", "application/json")
		handler.ServeHTTP(httptest.NewRecorder(), request)
		p.other = handler.ServeHTTP
	})
}

func tokenOf(t *testing.T, p *pod) string {
	t.Helper()
	token, err := webhook.FailuresToken(p.leaf.TLS(t).PrivateKey)
	expect.NoError(t, err)
	return token
}

// TestPodReportsFailures checks that a pod reports failures to clients with the token, and that
// those of probes are not included. A pod that does not report them passes its probe.
func TestPodReportsFailures(t *testing.T) {
	p := failing(t)
	library, err := NewLibrary(libraryDefinition("failures"), libraryConversion(p), []string{p.target.Address})
	expect.NoError(t, err)
	if _, err := library.Convert(nil, []byte(original), "v2"); err == nil {
		t.Fatal("the sample is converted")
	}
	wrong := p.target
	wrong.Canaries = []Canary{{DesiredAPIVersion: "example.com/v2", Object: []byte(original), Expected: []byte(converted)}}
	if _, err := Pod(t.Context(), wrong); err == nil {
		t.Fatal("the canary is converted")
	}

	p.target.FailuresToken = tokenOf(t, p)
	result, err := Pod(t.Context(), p.target)
	expect.NoError(t, err)
	got := result.Failures
	if got == nil || len(got.Failures) != 1 || got.Failures[0].Count != 1 || got.Failures[0].Object != "default/one" {
		t.Errorf("the pod reports %+v", got)
	}
	for crd, want := range map[string]int{crontabs: 1, "jobs.example.org": 0} {
		p.target.CRD = crd
		if result, err := Pod(t.Context(), p.target); err != nil || result.Failures == nil || len(result.Failures.Failures) != want {
			t.Errorf("of %s, the pod reports %+v, %v", crd, result.Failures, err)
		}
	}
	for name, token := range map[string]string{"without a token": "", "with a wrong token": "guess"} {
		p.target.FailuresToken = token
		if result, err := Pod(t.Context(), p.target); err != nil || result.Failures != nil {
			t.Errorf("%s: got %+v, %v", name, result.Failures, err)
		}
	}
}

// TestPodWithoutFailures checks pods of other operator versions, and invalid answers: they pass the
// probe.
func TestPodWithoutFailures(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter){
		"not supported": func(w http.ResponseWriter) { http.Error(w, "404 page not found", http.StatusNotFound) },
		"it is no JSON": func(w http.ResponseWriter) { _, _ = w.Write([]byte("hello")) },
		"no time":       func(w http.ResponseWriter) { _, _ = w.Write([]byte("{}")) },
		"too large": func(w http.ResponseWriter) {
			_, _ = w.Write([]byte(`{"now":"2026-01-01T00:00:00Z"` + strings.Repeat(" ", maxFailuresBytes) + "}"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := failing(t)
			p.target.FailuresToken = tokenOf(t, p)
			rest := p.other
			p.other = func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == webhook.FailuresPath {
					answer(w)
					return
				}
				rest(w, r)
			}
			if result, err := Pod(t.Context(), p.target); err != nil || result.Failures != nil {
				t.Errorf("got %+v, %v", result.Failures, err)
			}
		})
	}
}
