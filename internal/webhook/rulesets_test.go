// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

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
	list := httptest.NewRecorder()
	handler.ServeHTTP(list, httptest.NewRequest(http.MethodGet, RulesetsPath, nil))
	expect.Equal(t, "rulesets", `{"hashes":["before","new"]}`, list.Body.String())

	metrics := scrape(t, handler)
	for _, want := range []string{
		`conversion_operator_webhook_ruleset_info{crd="crontabs.example.com",hash="before"} 1`,
		`conversion_operator_webhook_ruleset_info{crd="crontabs.example.com",hash="new"} 1`,
		`conversion_operator_webhook_requests_total{crd="crontabs.example.com",failure_type="",result="success"} 2`,
		`conversion_operator_webhook_requests_total{crd="crontabs.example.com",failure_type="unknown_ruleset",result="failure"} 1`,
	} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("no metric %s in:\n%s", want, metrics)
		}
	}
}

// TestAPIServerRetriesAtAnotherPod checks that an API server retries if a pod does not have the
// ruleset, so that no client notices a pod with outdated rules.
func TestAPIServerRetriesAtAnotherPod(t *testing.T) {
	outdated := NewHandler([]Ruleset{labelled("def")}, HandlerOptions{Log: logr.Discard()})
	var message string
	pods := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if message != "" {
			newTestHandler().ServeHTTP(w, r)
			return
		}
		recorder := httptest.NewRecorder()
		outdated.ServeHTTP(recorder, r)
		var status metav1.Status
		if err := json.Unmarshal(recorder.Body.Bytes(), &status); err != nil {
			t.Error(err)
		}
		message = status.Message
		maps.Copy(w.Header(), recorder.Header())
		w.WriteHeader(recorder.Code)
		_, _ = w.Write(recorder.Body.Bytes())
	})
	got, err := apiServer(t, pods, "v1").ConvertToVersion(new(cronTab("v1beta1", "one")), schema.GroupVersion{Group: "example.com", Version: "v1"})
	expect.NoError(t, err)
	expect.Equal[runtime.Object](t, "object", new(cronTab("v1", "one")), got)
	if !strings.Contains(message, `does not have the rules "abc": `) {
		t.Errorf("the first pod answered %q", message)
	}
}
