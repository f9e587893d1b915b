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
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// labelled renames as the rules of a ruleset that leave its hash in the object.
func labelled(hash string) Ruleset {
	return Ruleset{Hash: hash, Pairs: [][2]string{{"v1beta1", "v1"}}, Converter: convertFunc(func(dst, object []byte, toVersion string) ([]byte, error) {
		return rename(dst, []byte(strings.Replace(string(object), `"name":"one"`, `"name":"one","by":"`+hash+`"`, 1)), toVersion)
	})}
}

// TestCallsAreAnsweredByTheRulesetThatTheyAskFor, and by no other.
func TestCallsAreAnsweredByTheRulesetThatTheyAskFor(t *testing.T) {
	handler := NewHandler([]Ruleset{labelled("new"), labelled("before")}, HandlerOptions{
		CRD: "crontabs.example.com", Group: "example.com", Log: logr.Discard()})
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
	const says = `this converter pod does not have the rules \"other\", it has before and new: see the conditions of the ConversionPolicy crontabs.example.com`
	cases := map[string]answer{
		"before": converted("before"),
		"new":    converted("new"),
		"other": {Code: 503, RetryAfter: "1", Connection: "close",
			Body: `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"` + says + `","reason":"ServiceUnavailable","details":{"retryAfterSeconds":1},"code":503}`},
	}
	for hash, want := range cases {
		t.Run(hash, func(t *testing.T) {
			request := httptest.NewRequest(http.MethodPost, ConvertPath+"/"+hash+"?timeout=30s", strings.NewReader(body))
			request.Header.Set("Content-Type", "application/json")
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, request)
			got := answer{recorder.Code, recorder.Body.String(), recorder.Header().Get("Retry-After"), recorder.Header().Get("Connection")}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
	told := httptest.NewRecorder()
	handler.ServeHTTP(told, httptest.NewRequest(http.MethodGet, RulesetsPath, nil))
	wantEqual(t, "rulesets", `{"hashes":["before","new"]}`, told.Body.String())

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

// TestAPIServerTurnsToAnotherPod where the first does not have the ruleset, so that
// no one notices a pod that a change of the rules has left behind.
func TestAPIServerTurnsToAnotherPod(t *testing.T) {
	behind := NewHandler([]Ruleset{labelled("def")}, HandlerOptions{Group: "example.com", Log: logr.Discard()})
	var message string
	pods := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if message != "" {
			newTestHandler().ServeHTTP(w, r)
			return
		}
		recorder := httptest.NewRecorder()
		behind.ServeHTTP(recorder, r)
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
	if err != nil {
		t.Fatal(err)
	}
	wantEqual[runtime.Object](t, "object", new(cronTab("v1", "one")), got)
	if !strings.Contains(message, `does not have the rules "abc", it has def`) {
		t.Errorf("the pod that was asked first said %q", message)
	}
}
