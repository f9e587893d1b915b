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

	"github.com/conversion-operator/conversion-operator/internal/webhook"
	"github.com/conversion-operator/conversion-operator/internal/webhook/internal/testca"
)

// failing is a real pod, in which a conversion that an API server asked for has failed.
func failing(t *testing.T) *pod {
	t.Helper()
	return newPod(t, func(_ *testca.Authority, p *pod) {
		handler := webhook.NewHandler([]webhook.Ruleset{{Hash: "abc", Converter: toVersion{}}}, webhook.HandlerOptions{Group: "example.com", Log: logr.Discard()})
		served := p.leaf.TLS(t)
		handler.ServeFailures(func() (*tls.Certificate, error) { return &served, nil })
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
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// TestPodTellsFailures to who knows its key, and what the operator tries out is not
// among them. A pod that does not tell is none that fails its probe.
func TestPodTellsFailures(t *testing.T) {
	p := failing(t)
	library, err := NewLibrary(libraryDefinition("failures"), libraryConversion(p), []string{p.target.Address})
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	told := result.Failures
	if told == nil || len(told.Failures) != 1 || told.Failures[0].Count != 1 || told.Failures[0].Object != "default/one" {
		t.Errorf("the pod tells %+v", told)
	}
	for name, token := range map[string]string{"who does not ask": "", "who does not know the key": "guess"} {
		p.target.FailuresToken = token
		if result, err := Pod(t.Context(), p.target); err != nil || result.Failures != nil {
			t.Errorf("%s is told %+v, %v", name, result.Failures, err)
		}
	}
}

// TestPodThatTellsNoFailures answers as it must otherwise: it is of another version
// of the operator, or tells nonsense.
func TestPodThatTellsNoFailures(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter){
		"it knows nothing of that": func(w http.ResponseWriter) { http.Error(w, "404 page not found", http.StatusNotFound) },
		"it is no JSON":            func(w http.ResponseWriter) { _, _ = w.Write([]byte("hello")) },
		"it tells no time":         func(w http.ResponseWriter) { _, _ = w.Write([]byte("{}")) },
		"it tells too much": func(w http.ResponseWriter) {
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
				t.Errorf("it is told %+v, %v", result.Failures, err)
			}
		})
	}
}
