// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestChecks: a policy has at most one check at a time, and its result wakes the policy.
func TestChecks(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	b := newBackground(t.Context())
	samples := newChecks(b, make(slots, 1), func() time.Time { return now })
	expect.Equal(t, "known before anything was started", nil, samples.latest("a"))
	results := make(chan observed.BackgroundCheck)
	find := func(context.Context) observed.BackgroundCheck { return <-results }
	samples.start("a", "one", find)
	samples.start("a", "two", find) // not while the first goes on
	check(t, samples, observed.BackgroundCheck{Subject: "one", Running: true, Attempts: 1})

	for _, next := range []observed.BackgroundCheck{
		{Subject: "one", Running: true, Attempts: 2},
		{Subject: "another", Running: true, Attempts: 1},
	} {
		results <- observed.BackgroundCheck{Objects: 3}
		expect.Equal(t, "wakes", "a", (<-b.checked).Object.GetName())
		if last := samples.latest("a"); last.Running || last.Objects != 3 || !last.Ended.Equal(now) {
			t.Errorf("after the result it is %+v", last)
		}
		samples.start("a", next.Subject, find)
		check(t, samples, next)
	}
	results <- observed.BackgroundCheck{}
	<-b.checked
	samples.forget("a")
	expect.Equal(t, "known after it was forgotten", nil, samples.latest("a"))
}

func check(t *testing.T, samples *checks, want observed.BackgroundCheck) {
	t.Helper()
	expect.Equal(t, "check", &want, samples.latest("a"))
}

// TestRestart: a check whose subject has changed ends, so that the policy need not wait for its end.
func TestRestart(t *testing.T) {
	b := newBackground(t.Context())
	searches := newChecks(b, make(slots, 2), time.Now)
	long := func(ctx context.Context) observed.BackgroundCheck {
		<-ctx.Done()
		return observed.BackgroundCheck{Reason: "Cancelled"}
	}
	searches.restart("a", "one", long)
	searches.restart("a", "one", long)
	searches.restart("b", "one", long)
	check(t, searches, observed.BackgroundCheck{Subject: "one", Running: true, Attempts: 1})
	short := func(context.Context) observed.BackgroundCheck { return observed.BackgroundCheck{Objects: 1} }
	searches.restart("a", "two", short)
	expect.Equal(t, "wakes", "a", (<-b.checked).Object.GetName())
	searches.restart("a", "two", short)
	<-b.checked
	if got := searches.latest("a"); got.Subject != "two" || got.Objects != 1 || got.Attempts != 1 {
		t.Errorf("the new check is %+v", got)
	}
	if got := searches.latest("b"); !got.Running {
		t.Errorf("the check of another policy is %+v", got)
	}
}

// TestCheckOfDeletedPolicy: a check ends with its policy without a result, and a policy of the
// same name starts again.
func TestCheckOfDeletedPolicy(t *testing.T) {
	b := newBackground(t.Context())
	samples := newChecks(b, make(slots, 2), time.Now)
	begun, cancelled := make(chan struct{}), make(chan struct{})
	samples.start("a", "one", func(ctx context.Context) observed.BackgroundCheck {
		close(begun)
		<-ctx.Done()
		close(cancelled)
		return observed.BackgroundCheck{Reason: "Cancelled"}
	})
	<-begun
	samples.forget("a")
	b.end("a")
	<-cancelled
	samples.start("a", "two", func(context.Context) observed.BackgroundCheck { return observed.BackgroundCheck{Objects: 1} })
	<-b.checked
	if got := samples.latest("a"); got.Subject != "two" || got.Objects != 1 || got.Reason != "" {
		t.Errorf("the check of the new policy is %+v", got)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	expect.Equal(t, "reason of a check that never had its turn", "CheckFailed", newChecks(b, nil, time.Now).inTurn(ended, nil).Reason)
}

// TestDrain: a manager that is shutting down cancels checks, waits for them, and starts no others.
func TestDrain(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	b := newBackground(context.WithoutCancel(ctx))
	restored := false
	b.run("a", func(life lifetime) {
		<-life.Done()
		restored = true
	})
	stop()
	if err := b.drain(ctx); err != nil || !restored {
		t.Errorf("restored %t, error %v", restored, err)
	}
	b.run("a", func(lifetime) { t.Error("started after the manager's end") })
	b.running.Wait()
}

// TestCleaningDoesNotBlockOtherChecks: a policy is sampled, counted and probed while the objects
// of other policies are being cleaned.
func TestCleaningDoesNotBlockOtherChecks(t *testing.T) {
	cleaning := make(chan struct{}, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if !strings.HasSuffix(request.URL.Path, "/cleaned") {
			w.WriteHeader(http.StatusInternalServerError)
			_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Message: "answered"})
			return
		}
		cleaning <- struct{}{}
		<-request.Context().Done()
	}))
	t.Cleanup(server.Close)
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	b := newBackground(ctx)
	c := NewBackgroundChecks(&rest.Config{Host: server.URL}, nil, nil, time.Now)
	c.prober.reached.put("reached", time.Now())
	c.start(b)

	for policy := range strings.SplitSeq("abcdefghijklmnopqrst", "") {
		c.do(policy, step.ClearManagedFields{Subject: "s", CRD: definitionOf("cleaned"), Version: "v0"})
	}
	for range cleaningsAtOnce {
		<-cleaning
	}
	fresh, policy := definitionOf("fresh"), "a new policy"
	conversion := &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
		ClientConfig: &apiextensionsv1.WebhookClientConfig{}, ConversionReviewVersions: []string{"v1"}}}
	c.do(policy, step.TakeSamples{Subject: "s", CRD: fresh, Conversion: conversion, Timeout: time.Minute})
	c.do(policy, step.TakeSamples{Subject: "s", CRD: fresh, Conversion: conversion, Timeout: time.Minute, Again: true})
	c.do(policy, step.CountWrites{Subject: "s", CRD: fresh})
	c.do(policy, step.ProbeAPIServer{Subject: "s", Service: "reached"})
	deadline := time.After(time.Minute)
	for range 4 {
		select {
		case woken := <-b.checked:
			expect.Equal(t, "woken", policy, woken.Object.GetName())
		case <-deadline:
			t.Fatalf("no turn for samples %+v, resamples %+v, counts %+v, API server %+v",
				c.samples.latest(policy), c.resamples.latest(policy), c.writes.latest(policy), c.apiServer.latest(policy))
		}
	}
	expect.Equal(t, "kinds that are cleaned at the same time besides as many as may be", 0, len(cleaning))
}

func definitionOf(plural string) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: plural + ".example.com"}}
	crd.Spec.Group, crd.Spec.Names.Plural, crd.Spec.Names.Kind = "example.com", plural, "Widget"
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true}}
	return crd
}
