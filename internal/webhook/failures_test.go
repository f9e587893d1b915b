// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// calling sends a review of objects at v1beta1 to a handler.
func calling(handler http.Handler, agent, desired string, objects ...string) {
	body := v1Review(`{"uid":"u","desiredAPIVersion":"` + desired + `","objects":[` + strings.Join(objects, ",") + `]}`)
	request := httptest.NewRequest(http.MethodPost, testPath, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", agent)
	handler.ServeHTTP(httptest.NewRecorder(), request)
}

func named(name, says string) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/v1beta1","metadata":{"namespace":"default","name":%q},"says":%q}`, name, says)
}

// TestFailuresAreRemembered by versions and cause, with an example.
func TestFailuresAreRemembered(t *testing.T) {
	handler := newMeasured()
	const agent = "kube-apiserver-admission"
	calling(handler, agent, "example.com/v1", named("a", "bad"))
	calling(handler, agent, "example.com/v1", named("b", "good"), named("b", "bad"))
	calling(handler, agent, "example.com/v1", named("big", "overflow"))
	calling(handler, agent, "example.com/v1", named("c", "panic"))
	calling(handler, agent, "example.com/v1", "7")
	calling(handler, agent, "example.com/v9", named("d", "bad"))
	calling(handler, agent, "example.com/v1", named("e\x1b[31m", "overflow"))

	want := []Failure{
		{Ruleset: "abc", From: "other", To: "other", Cause: conversion.CauseOther, Count: 1, Object: "default/d", Message: "bad"},
		{Ruleset: "abc", From: "other", To: "other", Cause: conversion.CauseWrongKind, Count: 1, Message: "it is not a JSON object"},
		{Ruleset: "abc", From: "v1beta1", To: "v1", Cause: conversion.CauseAnnotationsTooLarge, Count: 2, Object: "default/big"},
		{Ruleset: "abc", From: "v1beta1", To: "v1", Cause: conversion.CauseOther, Count: 2, Object: "default/a", Message: "bad"},
		{Ruleset: "abc", From: "v1beta1", To: "v1", Cause: CausePanic, Count: 1, Object: "default/c", Message: errPanic.Error()},
	}
	ignored := cmpopts.IgnoreFields(Failure{}, "First", "Last")
	got := handler.failures.read().Failures
	for i := range got {
		if got[i].Cause == conversion.CauseAnnotationsTooLarge {
			got[i].Message = ""
		}
		if got[i].First.After(got[i].Last) || got[i].First.IsZero() {
			t.Errorf("it failed first at %s and last at %s", got[i].First, got[i].Last)
		}
	}
	if diff := cmp.Diff(want, got, ignored); diff != "" {
		t.Error(diff)
	}
}

// TestProbesAreNoFailures: what the operator tries out is not production, and a
// caller that goes away is no failure.
func TestProbesAreNoFailures(t *testing.T) {
	handler := newMeasured()
	calling(handler, ProbeAgent+"/v1", "example.com/v1", named("a", "bad"))
	calling(handler, "", ProbeGroup+"/v1", named("a", "bad"))
	x := &exchange{handler: handler, target: &target{version: "v1", unknown: &pair{}}, began: clock()}
	x.remember(x.target.unknown, failureCanceled, "a", errGone)
	if got := handler.failures.read().Failures; len(got) != 0 {
		t.Errorf("failures: %+v", got)
	}
	x.began -= slowAfter
	x.remember(x.target.unknown, failureCanceled, "a", errGone)
	if got := handler.failures.read().Failures; len(got) != 1 || got[0].Cause != CauseTooSlow {
		t.Errorf("failures: %+v", got)
	}
}

// TestFailuresAreBounded, whatever is asked for.
func TestFailuresAreBounded(t *testing.T) {
	now := time.Unix(0, 0)
	log := newFailureLog(func() time.Time { now = now.Add(time.Second); return now })
	for i := range 3 * maxFailures {
		log.add(failureKey{from: fmt.Sprint(i)}, "a", "b")
		log.add(failureKey{from: "again"}, "a", "b")
	}
	got := log.read()
	if len(got.Failures) != maxFailures {
		t.Errorf("%d failures are remembered, want %d", len(got.Failures), maxFailures)
	}
	if last := got.Failures[len(got.Failures)-1]; last.From != "again" || last.Count != 3*maxFailures {
		t.Errorf("what goes on was forgotten: %+v", last)
	}
	if text := truncate(strings.Repeat("ä\n", maxFailureMessage)); len(text) > maxFailureMessage+len("…") || strings.Contains(text, "\n") {
		t.Errorf("a message of %d bytes: %q", len(text), text)
	}
}

// TestTheExampleLasts as long as it fails, and gives way once it does not.
func TestTheExampleLasts(t *testing.T) {
	now := time.Unix(0, 0)
	log := newFailureLog(func() time.Time { return now })
	example := func(object string, later time.Duration) string {
		now = now.Add(later)
		log.add(failureKey{}, object, "of "+object)
		return log.read().Failures[0].Object
	}
	for i, step := range []struct {
		object string
		later  time.Duration
		want   string
	}{
		{"a", 0, "a"}, {"b", time.Minute, "a"}, {"a", exampleLife, "a"}, {"b", exampleLife, "a"}, {"b", time.Second, "b"}, {"a", time.Second, "b"},
	} {
		if got := example(step.object, step.later); got != step.want {
			t.Errorf("step %d: the example is %s, want %s", i, got, step.want)
		}
	}
}

// TestWhoMayReadFailures: only who knows the private key that the pod serves with.
func TestWhoMayReadFailures(t *testing.T) {
	served, other := newKey(t), newKey(t)
	token := func(key *ecdsa.PrivateKey) string {
		token, err := FailuresToken(key)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	handler := newMeasured()
	calling(handler, "", "example.com/v1", named("secret", "bad"))
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
	handler.ServeFailures(func() (*tls.Certificate, error) { return &tls.Certificate{PrivateKey: served}, nil })
	for name, authorization := range map[string]string{
		"nothing": "", "another key": "Bearer " + token(other), "no scheme": token(served), "half of it": "Bearer " + token(served)[:10],
	} {
		if code, body := ask(authorization); code != http.StatusForbidden || strings.Contains(body, "default/secret") {
			t.Errorf("%s: %d %s", name, code, body)
		}
	}
	code, body := ask("Bearer " + token(served))
	var told Failures
	if err := json.Unmarshal([]byte(body), &told); err != nil || code != http.StatusOK || len(told.Failures) != 1 || told.Failures[0].Object != "default/secret" {
		t.Errorf("the manager is told %d %s", code, body)
	}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
