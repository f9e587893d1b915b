// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/webhook/internal/testca"
)

// sendReview sends a review with these objects and User-Agent.
func sendReview(handler http.Handler, agent, desired string, objects ...string) {
	body := v1Review(`{"uid":"u","desiredAPIVersion":"` + desired + `","objects":[` + strings.Join(objects, ",") + `]}`)
	request := httptest.NewRequest(http.MethodPost, testPath, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", agent)
	handler.ServeHTTP(httptest.NewRecorder(), request)
}

func named(name, text string) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/v1beta1","metadata":{"namespace":"default","name":%s},"text":%q}`, tree.Quote(nil, name), text)
}

// TestFailuresAreRecorded checks the entries by versions and cause, with an example.
func TestFailuresAreRecorded(t *testing.T) {
	handler := newMeasured()
	const agent = "kube-apiserver-admission"
	sendReview(handler, agent, "example.com/v1", named("a", "bad"))
	sendReview(handler, agent, "example.com/v1", named("b", "good"), named("b", "bad"))
	sendReview(handler, agent, "example.com/v1", named("big", "overflow"))
	sendReview(handler, agent, "example.com/v1", named("c", "panic"))
	sendReview(handler, agent, "example.com/v1", "7")
	sendReview(handler, agent, "example.com/v9", named("d", "bad"))
	sendReview(handler, agent, "example.com/v1", named("e\x1b[31m", "overflow"))

	want := []Failure{
		{CRD: crontabs, Ruleset: "abc", From: "other", To: "other", Cause: conversion.CauseOther, Count: 1, Object: "default/d", Message: "bad"},
		{CRD: crontabs, Ruleset: "abc", From: "other", To: "other", Cause: conversion.CauseWrongKind, Count: 1, Message: "it is not a JSON object"},
		{CRD: crontabs, Ruleset: "abc", From: "v1beta1", To: "v1", Cause: conversion.CauseAnnotationsTooLarge, Count: 2, Object: "default/big"},
		{CRD: crontabs, Ruleset: "abc", From: "v1beta1", To: "v1", Cause: conversion.CauseOther, Count: 2, Object: "default/a", Message: "bad"},
		{CRD: crontabs, Ruleset: "abc", From: "v1beta1", To: "v1", Cause: CausePanic, Count: 1, Object: "default/c", Message: errPanic.Error()},
	}
	ignored := cmpopts.IgnoreFields(Failure{}, "First", "Last")
	got := handler.readFailures("").Failures
	for i := range got {
		if got[i].Cause == conversion.CauseAnnotationsTooLarge {
			got[i].Message = ""
		}
		if got[i].First.After(got[i].Last) || got[i].First.IsZero() {
			t.Errorf("it failed first at %s and last at %s", got[i].First, got[i].Last)
		}
	}
	expect.Equal(t, "failures", want, got, ignored)
}

// TestProbesAreNotRecorded checks that probes of the operator and calls that the client cancelled
// are no failures.
func TestProbesAreNotRecorded(t *testing.T) {
	handler := newMeasured()
	sendReview(handler, ProbeAgent+"/v1", "example.com/v1", named("a", "bad"))
	sendReview(handler, "", ProbeGroup+"/v1", named("a", "bad"))
	x := &exchange{handler: handler, kind: handler.served.Load().other, ruleset: handler.served.Load().rulesets["abc"], target: &target{version: "v1", unknown: &pair{}}, began: clock()}
	x.recordFailure(x.target.unknown, failureCanceled, "a", errAbandoned)
	expect.Equal(t, "failures", []Failure{}, handler.readFailures("").Failures)
	x.began -= slowAfter
	x.recordFailure(x.target.unknown, failureCanceled, "a", errAbandoned)
	if got := handler.readFailures("").Failures; len(got) != 1 || got[0].Cause != CauseTooSlow {
		t.Errorf("failures: %+v", got)
	}
}

// TestFailuresAreBounded checks the bound for arbitrary requests.
func TestFailuresAreBounded(t *testing.T) {
	now := time.Unix(0, 0)
	log := newFailureLog(new(failureLogs), crontabs, func() time.Time { now = now.Add(time.Second); return now })
	for i := range 3 * maxFailures {
		log.add(failureKey{from: fmt.Sprint(i)}, "a", "b")
		log.add(failureKey{from: "again"}, "a", "b")
	}
	var got Failures
	log.appendTo(&got)
	expect.Equal(t, "remembered failures", maxFailures, len(got.Failures))
	if last := got.Failures[len(got.Failures)-1]; last.From != "again" || last.Count != 3*maxFailures {
		t.Errorf("the latest failure was removed: %+v", last)
	}
	if text := truncate(strings.Repeat("ä\n", maxFailureMessage)); len(text) > maxFailureMessage+len("…") || strings.Contains(text, "\n") {
		t.Errorf("a message of %d bytes: %q", len(text), text)
	}
}

// TestExampleIsStable checks that an object remains the example as long as it fails, and is
// replaced afterwards.
func TestExampleIsStable(t *testing.T) {
	now := time.Unix(0, 0)
	log := newFailureLog(new(failureLogs), crontabs, func() time.Time { return now })
	example := func(object string, later time.Duration) string {
		now = now.Add(later)
		log.add(failureKey{}, object, "of "+object)
		var got Failures
		log.appendTo(&got)
		return got.Failures[0].Object
	}
	for i, step := range []struct {
		object string
		later  time.Duration
		want   string
	}{
		{"a", 0, "a"}, {"b", time.Minute, "a"}, {"a", exampleTTL, "a"}, {"b", exampleTTL, "a"}, {"b", time.Second, "b"}, {"a", time.Second, "b"},
	} {
		expect.Equal(t, fmt.Sprintf("example in step %d", i), step.want, example(step.object, step.later))
	}
}

// TestReadingFailuresNeedsTheKey checks that only clients that know the private key of the pod may
// read failures.
func TestReadingFailuresNeedsTheKey(t *testing.T) {
	authority := testca.New(t)
	served, other := authority.Issue(t, serviceName, hours(1)).TLS(t), authority.Issue(t, serviceName, hours(1)).TLS(t)
	token := func(certificate tls.Certificate) string {
		token, err := FailuresToken(certificate.PrivateKey)
		expect.NoError(t, err)
		return token
	}
	handler := newMeasured()
	sendReview(handler, "", "example.com/v1", named("secret", "bad"))
	ask := func(authorization string) (int, string) {
		request := httptest.NewRequest(http.MethodGet, FailuresPath, nil)
		request.Header.Set("Authorization", authorization)
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		return recorder.Code, recorder.Body.String()
	}
	if code, _ := ask("Bearer " + token(served)); code != http.StatusForbidden {
		t.Errorf("a handler without a certificate answers %d", code)
	}
	handler.ServeFailures(func() *tls.Certificate { return &served })
	for name, authorization := range map[string]string{
		"nothing": "", "another key": "Bearer " + token(other), "no scheme": token(served), "half of it": "Bearer " + token(served)[:10],
	} {
		if code, body := ask(authorization); code != http.StatusForbidden || strings.Contains(body, "default/secret") {
			t.Errorf("%s: %d %s", name, code, body)
		}
	}
	code, body := ask("Bearer " + token(served))
	var got Failures
	if err := json.Unmarshal([]byte(body), &got); err != nil || code != http.StatusOK || len(got.Failures) != 1 || got.Failures[0].Object != "default/secret" {
		t.Errorf("the manager gets %d %s", code, body)
	}
}

// TestOversized checks that a pod remembers a bounded number of the latest objects, and forgets
// expired ones.
func TestOversized(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	log := newFailureLog(new(failureLogs), crontabs, func() time.Time { return now })
	omitted := &conversion.Omitted{Version: "v1", At: "v1beta1", Count: 7, Bytes: 400_000, Fields: []string{".a", ".b", ".c", ".d", ".e", ".f"}}
	for i := range 10 * maxOversized {
		now = now.Add(time.Second)
		log.addOversized(fmt.Sprintf("default/%04d", i), omitted)
		log.addOversized(fmt.Sprintf("default/%04d", i), omitted)
	}
	got := log.listOversized()
	want := Oversized{CRD: crontabs, Object: "default/0639", Version: "v1beta1", FieldsOf: "v1", Fields: []string{".a", ".b", ".c", ".d", ".e"}, Bytes: 400_000, Last: now}
	expect.Equal(t, "objects", maxOversized, len(got))
	expect.Equal(t, "the last object", want, got[len(got)-1])
	now = now.Add(oversizedTTL + time.Second)
	log.addOversized("default/new", omitted)
	if got := log.listOversized(); len(got) != 1 || got[0].Object != "default/new" {
		t.Errorf("objects are %+v", got)
	}
}
