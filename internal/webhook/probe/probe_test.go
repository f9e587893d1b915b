// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/webhook"
	"github.com/conversion-operator/conversion-operator/internal/webhook/internal/testca"
)

const (
	serverName = "crontabs.conversion-system.svc"
	original   = `{"apiVersion":"example.com/v1beta1","kind":"CronTab","metadata":{"labels":{"a":"b"},"namespace":"default","name":"one","uid":"1-2-3"},"spec":{"host":"h","n":9007199254740993}}`
	converted  = `{"apiVersion":"example.com/v1","kind":"CronTab","metadata":{"labels":{"a":"b"},"namespace":"default","name":"one","uid":"1-2-3"},"spec":{"host":"h","n":9007199254740993}}`
)

// pod is a fake converter pod on loopback.
type pod struct {
	target Target
	// answer returns the answer to a review.
	answer func(uid string, body []byte) string
	// other, if set, handles all requests instead.
	other http.HandlerFunc
	leaf  testca.Leaf
	// connections counts the connections to the pod.
	connections atomic.Int32
	// requests are the requests to the pod, as method and path.
	requests []string
}

func newPod(t *testing.T, options ...func(*testca.Authority, *pod)) *pod {
	t.Helper()
	authority := testca.New(t)
	p := &pod{leaf: authority.Issue(t, serverName, time.Now().Add(time.Hour))}
	p.target = Target{
		CABundle: authority.Bundle, ServerName: serverName, RulesetHash: "abc", APIVersion: "example.com/v1",
		Canaries: []Canary{{DesiredAPIVersion: "example.com/v1", Object: []byte(original), Expected: []byte(converted)}},
	}
	for _, option := range options {
		option(authority, p)
	}
	server := httptest.NewUnstartedServer(p)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{p.leaf.TLS(t)}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			p.connections.Add(1)
		}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	p.target.Address = server.Listener.Addr().String()
	return p
}

func (p *pod) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.requests = append(p.requests, r.Method+" "+r.URL.Path)
	switch {
	case p.other != nil:
		p.other(w, r)
	case r.URL.Path == webhook.RulesetsPath:
		_, _ = io.WriteString(w, `{"hashes":["abc"]}`)
	default:
		body, _ := io.ReadAll(r.Body)
		var review apiextensionsv1.ConversionReview
		_ = json.Unmarshal(body, &review)
		_, _ = io.WriteString(w, p.answer(string(review.Request.UID), body))
	}
}

// toVersion is a Converter for the two objects above.
type toVersion struct{}

func (toVersion) Answer(dst, text []byte, version string, _ func(int64) bool) ([]byte, conversion.Outcome, error) {
	var object json.RawMessage
	decoder := json.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&object); err != nil {
		return dst, conversion.Outcome{}, err
	}
	if version == "v2" {
		return dst, conversion.Outcome{}, errors.New("there is no version v2")
	}
	from := map[string]string{"v1": "v1beta1", "v1beta1": "v1"}[version]
	dst = append(dst, bytes.Replace(object, []byte("example.com/"+from), []byte("example.com/"+version), 1)...)
	return dst, conversion.Outcome{Read: int(decoder.InputOffset()), From: from}, nil
}

// converter makes the pod answer like a real one.
func converter(_ *testca.Authority, p *pod) {
	p.other = webhook.NewHandler([]webhook.Ruleset{{Group: "example.com", Hash: "abc", Converter: toVersion{}}}, webhook.HandlerOptions{Log: logr.Discard()}).ServeHTTP
}

func TestPod(t *testing.T) {
	there := Canary{DesiredAPIVersion: "example.com/v1", Object: []byte(original), Expected: []byte(converted)}
	back := Canary{DesiredAPIVersion: "example.com/v1beta1", Object: []byte(converted), Expected: []byte(original)}
	for name, tc := range map[string]struct {
		canaries    []Canary
		closes      bool
		requests    []string
		connections int32
	}{
		"a canary there and back": {
			canaries: []Canary{there, back}, requests: []string{"GET /ruleset", "POST /convert/abc", "POST /convert/abc"}, connections: 1,
		},
		"no canary objects": {requests: []string{"GET /ruleset", "POST /convert/abc"}, connections: 1},
		"a pod that closes connections": {
			canaries: []Canary{there}, closes: true, requests: []string{"GET /ruleset", "POST /convert/abc"}, connections: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := newPod(t, converter)
			pod.target.Canaries = tc.canaries
			handler := pod.other
			pod.other = func(w http.ResponseWriter, r *http.Request) {
				if tc.closes {
					w.Header().Set("Connection", "close")
				}
				handler(w, r)
			}
			got, err := Pod(t.Context(), pod.target)
			expect.NoError(t, err)
			expect.Equal(t, "result", Result{NotAfter: pod.leaf.NotAfter, RulesetHashes: []string{"abc"}}, got)
			expect.Equal(t, "requests", tc.requests, pod.requests)
			expect.Equal(t, "connections", tc.connections, pod.connections.Load())
		})
	}
}

func TestRequestIsThatOfAnAPIServer(t *testing.T) {
	pod := newPod(t)
	var header http.Header
	var host, name, protocol string
	var body []byte
	pod.other = func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == webhook.RulesetsPath {
			_, _ = io.WriteString(w, `{"hashes":["abc"]}`)
			return
		}
		header, host, name, protocol = r.Header, r.Host, r.TLS.ServerName, r.Proto
		body, _ = io.ReadAll(r.Body)
	}
	_, _ = Pod(t.Context(), pod.target)

	_, port, _ := net.SplitHostPort(pod.target.Address)
	got := []string{header.Get("Content-Type"), header.Get("Accept-Encoding"), host, name, protocol}
	expect.Equal(t, "request", []string{"application/json", "", serverName + ":" + port, serverName, "HTTP/1.1"}, got)
	review, _ := expect.JSON(t, body).(map[string]any)
	request, _ := review["request"].(map[string]any)
	if uid, _ := request["uid"].(string); uid == "" {
		t.Errorf("no uid in %v", review)
	}
	delete(request, "uid")
	want := map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "ConversionReview",
		"request":    map[string]any{"desiredAPIVersion": "example.com/v1", "objects": []any{expect.JSON(t, original)}},
	}
	expect.Equal(t, "review", want, review)
}

func TestPodFails(t *testing.T) {
	answers := func(status int, body string) func(*testca.Authority, *pod) {
		return func(_ *testca.Authority, p *pod) {
			p.other = func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(status)
				_, _ = io.WriteString(w, body)
			}
		}
	}
	target := func(change func(*Target)) func(*testca.Authority, *pod) {
		return func(_ *testca.Authority, p *pod) { change(&p.target) }
	}
	leaf := func(name string, age time.Duration) func(*testca.Authority, *pod) {
		return func(a *testca.Authority, p *pod) { p.leaf = a.Issue(t, name, time.Now().Add(-age)) }
	}
	foreign := testca.New(t)

	cases := map[string]struct {
		options []func(*testca.Authority, *pod)
		want    *Error
		known   Result
	}{
		"no CA bundle":          {options: []func(*testca.Authority, *pod){target(func(t *Target) { t.CABundle = nil })}, want: &Error{ReasonInvalidCertificate, "the CA bundle holds no certificate in PEM"}},
		"whitespace bundle":     {options: []func(*testca.Authority, *pod){target(func(t *Target) { t.CABundle = []byte("\n") })}, want: &Error{ReasonInvalidCertificate, "the CA bundle holds no certificate in PEM"}},
		"another CA":            {options: []func(*testca.Authority, *pod){target(func(t *Target) { t.CABundle = foreign.Bundle })}, want: &Error{ReasonTLSVerificationFailed, `TLS handshake with ADDRESS as crontabs.conversion-system.svc: x509: certificate signed by unknown authority (possibly because of "x509: ECDSA verification failure" while trying to verify candidate authority certificate "authority")`}},
		"another name":          {options: []func(*testca.Authority, *pod){leaf("other.conversion-system.svc", -time.Hour)}, want: &Error{ReasonTLSVerificationFailed, "TLS handshake with ADDRESS as crontabs.conversion-system.svc: x509: certificate is valid for other.conversion-system.svc, not crontabs.conversion-system.svc"}},
		"expired":               {options: []func(*testca.Authority, *pod){leaf(serverName, time.Hour)}, want: &Error{ReasonTLSVerificationFailed, `TLS handshake with ADDRESS as crontabs.conversion-system.svc: the certificate "CN=crontabs.conversion-system.svc,O=conversion-operator" is not valid now: it is valid from NOTBEFORE to NOTAFTER`}},
		"not valid yet":         {options: []func(*testca.Authority, *pod){leaf(serverName, -48*time.Hour)}, want: &Error{ReasonTLSVerificationFailed, `TLS handshake with ADDRESS as crontabs.conversion-system.svc: the certificate "CN=crontabs.conversion-system.svc,O=conversion-operator" is not valid now: it is valid from NOTBEFORE to NOTAFTER`}},
		"no ruleset":            {options: []func(*testca.Authority, *pod){answers(404, "404 page not found\n")}, want: &Error{ReasonUnexpectedAnswer, `GET /ruleset answered HTTP status 404: "404 page not found"`}},
		"a redirect":            {options: []func(*testca.Authority, *pod){answers(302, "")}, want: &Error{ReasonUnexpectedAnswer, `GET /ruleset answered HTTP status 302: ""`}},
		"a Status":              {options: []func(*testca.Authority, *pod){answers(500, `{"kind":"Status","message":"out of order"}`)}, want: &Error{ReasonUnexpectedAnswer, `GET /ruleset answered HTTP status 500: out of order`}},
		"a long text":           {options: []func(*testca.Authority, *pod){answers(500, strings.Repeat("ä", 400))}, want: &Error{ReasonUnexpectedAnswer, `GET /ruleset answered HTTP status 500: "` + strings.Repeat("ä", 250) + `…"`}},
		"no ruleset in JSON":    {options: []func(*testca.Authority, *pod){answers(200, `{}`)}, want: &Error{ReasonUnexpectedAnswer, `GET /ruleset answered "{}", not the rulesets that the pod serves`}},
		"garbage for a ruleset": {options: []func(*testca.Authority, *pod){answers(200, `<html>`)}, want: &Error{ReasonUnexpectedAnswer, `GET /ruleset answered "<html>", not the rulesets that the pod serves`}},
		"an endless ruleset":    {options: []func(*testca.Authority, *pod){answers(200, strings.Repeat(" ", maxAnswerBytes+1))}, want: &Error{ReasonUnexpectedAnswer, `GET /ruleset answered more than 16777216 bytes`}},
		"another ruleset":       {options: []func(*testca.Authority, *pod){converter, target(func(t *Target) { t.RulesetHash = "def" })}, want: &Error{ReasonWrongRuleset, `the pod serves ruleset "abc", not "def"`}, known: Result{RulesetHashes: []string{"abc"}}},
		"a canary that fails":   {options: []func(*testca.Authority, *pod){converter, target(func(t *Target) { t.Canaries[0].DesiredAPIVersion = "example.com/v2" })}, want: &Error{ReasonCanaryFailed, "converting to example.com/v2: default/one cannot be converted from v1beta1 to v2: there is no version v2"}, known: Result{RulesetHashes: []string{"abc"}}},
		"another group":         {options: []func(*testca.Authority, *pod){converter, target(func(t *Target) { t.Canaries = nil; t.APIVersion = "example.org/v1" })}, want: &Error{ReasonCanaryFailed, "converting to example.org/v1: this converter serves example.com, but the request is for example.org/v1: the CustomResourceDefinition refers to the wrong webhook"}, known: Result{RulesetHashes: []string{"abc"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := newPod(t, tc.options...)
			got, err := Pod(t.Context(), pod.target)
			tc.want.Message = strings.NewReplacer(
				"ADDRESS", pod.target.Address,
				"NOTBEFORE", pod.leaf.NotBefore.Format(time.RFC3339),
				"NOTAFTER", pod.leaf.NotAfter.Format(time.RFC3339),
			).Replace(tc.want.Message)
			expectError(t, tc.want, err)
			expect.Equal(t, "ruleset", tc.known.RulesetHashes, got.RulesetHashes)
		})
	}
}
