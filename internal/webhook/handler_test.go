// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestRoutes(t *testing.T) {
	type answer struct {
		Code       int
		Body       string
		Allow      string
		Connection string
	}
	cases := map[string]struct {
		method, path string
		drain        bool
		want         answer
	}{
		"ruleset":                  {method: "GET", path: "/ruleset", want: answer{Code: 200, Body: `{"hashes":["abc"]}`}},
		"health":                   {method: "GET", path: "/healthz", want: answer{Code: 200, Body: "ok\n"}},
		"readiness":                {method: "GET", path: "/readyz", want: answer{Code: 200, Body: "ok\n"}},
		"health while draining":    {method: "GET", path: "/healthz", drain: true, want: answer{Code: 200, Body: "ok\n", Connection: "close"}},
		"readiness when draining":  {method: "GET", path: "/readyz", drain: true, want: answer{Code: 503, Body: "stopping\n", Connection: "close"}},
		"reading convert":          {method: "GET", path: "/convert", want: answer{Code: 404, Body: "404 page not found\n"}},
		"writing the ruleset":      {method: "POST", path: "/ruleset", want: answer{Code: 405, Body: "Method Not Allowed\n", Allow: "GET, HEAD"}},
		"root":                     {method: "POST", path: "/", want: answer{Code: 404, Body: "404 page not found\n"}},
		"metrics":                  {method: "GET", path: "/metrics", want: answer{Code: 404, Body: "404 page not found\n"}},
		"profiles":                 {method: "GET", path: "/debug/pprof/", want: answer{Code: 404, Body: "404 page not found\n"}},
		"reading a ruleset's path": {method: "GET", path: "/convert/abc", want: answer{Code: 405, Body: "Method Not Allowed\n", Allow: "POST"}},
		"no ruleset at all":        {method: "POST", path: "/convert", want: answer{Code: 404, Body: "404 page not found\n"}},
		"no ruleset in the path":   {method: "POST", path: "/convert/", want: answer{Code: 404, Body: "404 page not found\n"}},
		"replacing the ruleset":    {method: "PUT", path: "/ruleset", want: answer{Code: 405, Body: "Method Not Allowed\n", Allow: "GET, HEAD"}},
		"deleting the ruleset":     {method: "DELETE", path: "/ruleset", want: answer{Code: 405, Body: "Method Not Allowed\n", Allow: "GET, HEAD"}},
		"variables":                {method: "GET", path: "/debug/vars", want: answer{Code: 404, Body: "404 page not found\n"}},
		"below the ruleset":        {method: "GET", path: "/ruleset/rules", want: answer{Code: 404, Body: "404 page not found\n"}},
		"below a ruleset's path":   {method: "POST", path: "/convert/abc/x", want: answer{Code: 404, Body: "404 page not found\n"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			handler := newTestHandler()
			if tc.drain {
				handler.Drain(true)
			}
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, httptest.NewRequest(tc.method, tc.path, nil))
			got := answer{recorder.Code, recorder.Body.String(), recorder.Header().Get("Allow"), recorder.Header().Get("Connection")}
			expect.Equal(t, "answer", tc.want, got)
		})
	}
}

// labelled returns a ruleset that renames and adds its hash to the object.
func labelled(hash string) Ruleset {
	return Ruleset{CRD: crontabs, Group: "example.com", Kind: "CronTab", Hash: hash, Pairs: [][2]string{{"v1beta1", "v1"}}, Converter: convertFunc(func(dst, object []byte, toVersion string) ([]byte, error) {
		return rename(dst, []byte(strings.Replace(string(object), `"name":"one"`, `"name":"one","by":"`+hash+`"`, 1)), toVersion)
	})}
}

// TestRulesetOfPathConverts checks that the ruleset in the path converts, and no other.
func TestRulesetOfPathConverts(t *testing.T) {
	handler := NewHandler([]Ruleset{labelled("new"), labelled("before")}, HandlerOptions{
		Log: logr.Discard()})
	body := v1Review(`{"uid":"u","desiredAPIVersion":"example.com/v1","objects":[{"apiVersion":"example.com/v1beta1","name":"one"}]}`)
	const head = `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","response":{"uid":"u","convertedObjects":[`
	type answer struct {
		Code                   int
		Body                   string
		RetryAfter, Connection string
	}
	converted := func(by string) answer {
		return answer{Code: 200, Body: head + `{"apiVersion":"example.com/v1","name":"one","by":"` + by + `"}],"result":{"status":"Success"}}}`}
	}
	const message = `this converter pod does not have the rules \"other\": see the conditions of the ConversionPolicy of this kind`
	cases := map[string]answer{
		"before": converted("before"),
		"new":    converted("new"),
		"other": {Code: 503, RetryAfter: "1", Connection: "close",
			Body: `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"` + message + `","reason":"ServiceUnavailable","details":{"retryAfterSeconds":1},"code":503}`},
	}
	for hash, want := range cases {
		t.Run(hash, func(t *testing.T) {
			recorder := postTo(handler, ConvertPath+"/"+hash, body)
			got := answer{recorder.Code, recorder.Body.String(), recorder.Header().Get("Retry-After"), recorder.Header().Get("Connection")}
			expect.Equal(t, "answer", want, got)
		})
	}
	expect.Equal(t, "rulesets", `{"hashes":["before","new"]}`, get(handler, RulesetsPath))

	expect.Contains(t, "the metrics", scrape(t, handler),
		`conversion_operator_webhook_ruleset_info{crd="crontabs.example.com",hash="before"} 1`+"\n",
		`conversion_operator_webhook_ruleset_info{crd="crontabs.example.com",hash="new"} 1`+"\n",
		`conversion_operator_webhook_requests_total{crd="crontabs.example.com",failure_type="",result="success"} 2`+"\n",
		`conversion_operator_webhook_requests_total{crd="crontabs.example.com",failure_type="unknown_ruleset",result="failure"} 1`+"\n")
}
