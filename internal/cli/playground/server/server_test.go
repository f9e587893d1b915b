// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/cli/playground"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// started is a server on this computer.
type started struct {
	*testing.T
	url, token string
}

func start(t *testing.T, live *Live) started {
	t.Helper()
	handler, err := New(playground.Sample(), live)
	expect.NoError(t, err)
	running := httptest.NewServer(handler)
	t.Cleanup(running.Close)
	at, err := url.Parse(handler.URL(running.Listener.Addr()))
	expect.NoError(t, err)
	if token, found := strings.CutPrefix(at.Fragment, "token="); found && len(token) > 20 && at.RawQuery == "" {
		return started{t, "http://" + at.Host, token}
	}
	t.Fatalf("the address %s has no token after #", at)
	return started{}
}

// ask sends a request, with changes to it, and returns the status and the text.
func (s started) ask(method, path string, body io.Reader, changes ...func(*http.Request)) (int, string) {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), method, s.url+path, body)
	expect.NoError(s, err)
	request.Header.Set("Authorization", "Bearer "+s.token)
	for _, change := range changes {
		change(request)
	}
	answer, err := http.DefaultClient.Do(request)
	expect.NoError(s, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	expect.NoError(s, err)
	if policy := answer.Header.Get("Content-Security-Policy"); policy != contentPolicy {
		s.Errorf("%s %s has the policy %q", method, path, policy)
	}
	if answer.Header.Get("Access-Control-Allow-Origin") != "" {
		s.Errorf("%s %s lets other pages read the answer", method, path)
	}
	return answer.StatusCode, string(text)
}

func header(name, value string) func(*http.Request) {
	return func(request *http.Request) { request.Header.Set(name, value) }
}

func host(name string) func(*http.Request) {
	return func(request *http.Request) { request.Host = name }
}

// TestOnlyThePage tries requests of other pages and programs.
func TestOnlyThePage(t *testing.T) {
	s := start(t, nil)
	question, err := json.Marshal(playground.Question{Input: playground.Sample()})
	expect.NoError(t, err)
	for name, test := range map[string]struct {
		method, path string
		change       func(*http.Request)
		want         int
	}{
		"the page":                 {"POST", "/api/check", header("Origin", s.url), http.StatusOK},
		"a program with the token": {"POST", "/api/check", header("X", "y"), http.StatusOK},
		"the start":                {"GET", "/api/start", header("X", "y"), http.StatusOK},
		"without a token":          {"POST", "/api/check", header("Authorization", ""), http.StatusUnauthorized},
		"the start without one":    {"GET", "/api/start", header("Authorization", ""), http.StatusUnauthorized},
		"with another token":       {"POST", "/api/check", header("Authorization", "Bearer "+strings.Repeat("A", 26)), http.StatusUnauthorized},
		"from another page":        {"POST", "/api/check", header("Origin", "https://example.com"), http.StatusForbidden},
		"across sites":             {"POST", "/api/check", header("Sec-Fetch-Site", "cross-site"), http.StatusForbidden},
		"by another name":          {"POST", "/api/check", host("example.com"), http.StatusMisdirectedRequest},
		"by another name, a file":  {"GET", "/", host("rebound.example.com:80"), http.StatusMisdirectedRequest},
		"by another address":       {"GET", "/", host("192.0.2.1"), http.StatusMisdirectedRequest},
		"localhost":                {"GET", "/", host("localhost:1234"), http.StatusOK},
		"IPv6":                     {"GET", "/", host("[::1]"), http.StatusOK},
		"another method":           {"GET", "/api/check", header("X", "y"), http.StatusMethodNotAllowed},
		"an unknown question":      {"POST", "/api/delete", header("X", "y"), http.StatusBadRequest},
		"an unknown file":          {"GET", "/server.go", header("X", "y"), http.StatusNotFound},
		"a file above":             {"GET", "/..%2fgo.mod", header("X", "y"), http.StatusNotFound},
		"no cluster":               {"POST", "/api/live", header("X", "y"), http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			got, text := s.ask(test.method, test.path, bytes.NewReader(question), test.change)
			expect.Equal(t, "the status of "+text, test.want, got)
		})
	}
}

func TestFiles(t *testing.T) {
	s := start(t, nil)
	for path, want := range map[string]string{
		"/": "playground.js", "/playground.js": "function", "/playground.css": "[role=\"tab\"]", "/report.css": ".mapping", "/licences.txt": "MIT License",
	} {
		if status, text := s.ask("GET", path, nil, header("Authorization", "")); status != http.StatusOK || !strings.Contains(text, want) || strings.Contains(text, s.token) {
			t.Errorf("%s is %d, and has %d bytes", path, status, len(text))
		}
	}
}

// TestTooLarge sends more than a server takes.
func TestTooLarge(t *testing.T) {
	status, text := start(t, nil).ask("POST", "/api/check", strings.NewReader(`{"crd": "`+strings.Repeat("a", maxQuestion)))
	expect.Equal(t, "status", http.StatusRequestEntityTooLarge, status)
	expect.Contains(t, "the answer", text, "leave out objects")
}

// TestLive tests the objects of a cluster, which the test gives.
func TestLive(t *testing.T) {
	fails := false
	s := start(t, &Live{Name: "https://cluster.example", Test: func(
		_ context.Context, policy *v1alpha1.ConversionPolicy, crd *apiextensionsv1.CustomResourceDefinition,
	) (*verify.Report, error) {
		if fails {
			return nil, errors.New("the cluster is gone")
		}
		return &verify.Report{Outcome: verify.Passed, Policy: policy.Name, ObjectsFrom: crd.Name + " of the cluster", Objects: 7}, nil
	}})
	_, text := s.ask("GET", "/api/start", nil)
	expect.Contains(t, "the answer", text, `"live":"https://cluster.example"`)
	ask := func(want int, part string, change func(*playground.Input)) {
		question := playground.Question{Input: playground.Sample()}
		change(&question.Input)
		encoded, err := json.Marshal(question)
		expect.NoError(t, err)
		status, text := s.ask("POST", "/api/live", bytes.NewReader(encoded))
		expect.Equal(t, "status", want, status)
		expect.Contains(t, "the answer", text, part)
	}
	ask(http.StatusOK, "7 objects from crontabs.stable.example.com of the cluster", func(*playground.Input) {})
	ask(http.StatusOK, "there is no ConversionPolicy", func(in *playground.Input) { in.Policy = "a: b" })
	fails = true
	ask(http.StatusBadRequest, "the cluster is gone", func(*playground.Input) {})
}
