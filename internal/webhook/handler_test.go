// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"net/http/httptest"
	"testing"

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
