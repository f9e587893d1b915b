// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/webhook"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

// TestReportedFailures: failures are summed over rulesets, with times of the manager's clock, and
// bounded.
func TestReportedFailures(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	theirs := now.Add(-time.Hour) // the clock of the pod
	failure := func(ruleset string, cause conversion.Cause, count int64, ago time.Duration, object string) webhook.Failure {
		return webhook.Failure{Ruleset: ruleset, From: "v1", To: "v2", Cause: cause, Count: count, Last: theirs.Add(-ago), Object: object, Message: "no"}
	}
	row := func(cause v1alpha1.ConversionFailureCause, count int64, ago time.Duration, object string) observed.Failure {
		return observed.Failure{ConversionFailure: v1alpha1.ConversionFailure{
			From: "v1", To: "v2", Cause: cause, LastTime: metav1.NewTime(now.Add(-ago)), Object: object, Message: "no"}, Count: count}
	}
	lacks := func(ruleset string) observed.Failure {
		told := row("UnknownVersion", 1, time.Second, "")
		told.Ruleset, told.Since = ruleset, now.Add(-time.Minute)
		return told
	}
	lacked := func(ruleset string) webhook.Failure {
		told := failure(ruleset, "UnknownVersion", 1, time.Second, "")
		told.First = theirs.Add(-time.Minute)
		return told
	}
	got := reportedFailures(&webhook.Failures{Now: theirs, Failures: []webhook.Failure{
		failure("a", "Panic", 2, time.Minute, "default/a"),
		failure("b", "Panic", 3, time.Second, "default/b"),
		failure("a", "not a word", 1, -time.Minute, strings.Repeat("x", maxObject+1)),
		failure("a", "InvalidJSON", 0, 0, ""),
		lacked("a"), lacked("b"),
	}}, now)
	want := []observed.Failure{row("Panic", 5, time.Second, "default/b"), row("Other", 1, 0, ""), lacks("a"), lacks("b")}
	expect.Equal(t, "rows", want, got)
	many := &webhook.Failures{Now: theirs, Failures: make([]webhook.Failure, 10*maxReported)}
	for i := range many.Failures {
		many.Failures[i] = failure("a", conversion.Cause("A"+strings.Repeat("b", i%60)), 1, 0, "")
		many.Failures[i].From = strings.Repeat("v", 1+i/60)
		many.Failures[i].Message = strings.Repeat("ä", maxMessage)
	}
	got = reportedFailures(many, now)
	if len(got) != maxReported || len(got[0].Message) > maxMessage {
		t.Errorf("%d rows, with messages of %d bytes", len(got), len(got[0].Message))
	}
}

// TestReprobeReadsFailures: a policy is woken only when more conversions have failed in one of its
// pods.
func TestReprobeReadsFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var count, asked atomic.Int64
		p := NewProber(5 * time.Minute)
		p.background = newBackground(t.Context())
		p.probe = func(context.Context, probe.Target) (probe.Result, error) {
			asked.Add(1)
			told := &webhook.Failures{Now: time.Now()}
			if n := count.Load(); n > 0 {
				told.Failures = []webhook.Failure{{From: "v1", To: "v2", Cause: "Panic", Count: n, Last: time.Now()}}
			}
			return probe.Result{Failures: told}, nil
		}
		p.prove(t.Context(), p.rulesetRequests(observed.Pod{UID: "1"}, probe.Target{}, probeScope{policy: "one", lasts: p.lifetime})(nil))
		go func() { _ = p.reprobe(t.Context()) }()
		quiet := func() {
			t.Helper()
			select {
			case about := <-p.background.woken:
				t.Errorf("policy %s is woken", about.Object.GetName())
			case <-time.After(11 * time.Minute):
			}
		}
		quiet()
		count.Store(1)
		expect.Equal(t, "woken", "one", (<-p.background.woken).Object.GetName())
		state := &observed.Cluster{Policy: &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, Pods: []observed.Pod{{UID: "1"}, {UID: "2"}}}
		p.fillReports(state)
		expect.Equal(t, "failures of the two pods", []int{1, 0}, []int{len(state.Pods[0].Failures), len(state.Pods[1].Failures)})
		quiet()
		p.retainPods("one", nil)
		p.fillReports(state)
		expect.Equal(t, "failures of a deleted pod", 0, len(state.Pods[0].Failures))
	})
}

// TestFailuresToken: the token depends on the key only.
func TestFailuresToken(t *testing.T) {
	authority, err := pki.NewAuthority("test", time.Now(), time.Hour)
	expect.NoError(t, err)
	leaf, err := pki.IssueLeaf(authority, "a.b.svc", time.Now(), time.Hour)
	expect.NoError(t, err)
	secret := &corev1.Secret{Data: map[string][]byte{corev1.TLSCertKey: leaf.Certificate, corev1.TLSPrivateKeyKey: leaf.Key}}
	token := failuresToken(secret)
	if token == "" || strings.Contains(string(leaf.Key), token) || failuresToken(secret) != token {
		t.Errorf("the token is %q", token)
	}
	expect.Equal(t, "without a key the token", "", failuresToken(&corev1.Secret{}))
}

// TestConcurrentResamples: all running checks count against the limit.
func TestConcurrentResamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := NewBackgroundChecks(&rest.Config{}, nil, nil, time.Now)
		ctx, cancel := context.WithCancel(t.Context())
		i.start(newBackground(ctx))
		for range resamplesAtOnce {
			i.resamples.slots.acquire(t.Context()) // so that none ends
		}
		for _, policy := range []string{"a", "b"} {
			state := observed.Cluster{Policy: &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: policy}}}
			i.observe(&state)
			expect.Equal(t, "busy before "+policy, false, state.ResamplersBusy)
			i.do(policy, step.TakeSamples{Subject: "x", Again: true})
			if i.observe(&state); state.Resampled == nil || !state.Resampled.Running || state.Samples != nil {
				t.Errorf("of %s is known: %+v, and before the activation %+v", policy, state.Resampled, state.Samples)
			}
		}
		state := observed.Cluster{Policy: &v1alpha1.ConversionPolicy{}}
		i.observe(&state)
		expect.Equal(t, "busy with two", true, state.ResamplersBusy)
		cancel()
		synctest.Wait()
	})
}

// TestCausesOfPods: the API has a constant for each cause that converter pods report.
func TestCausesOfPods(t *testing.T) {
	for documented, reported := range map[v1alpha1.ConversionFailureCause]conversion.Cause{
		v1alpha1.CauseAnnotationsTooLarge: conversion.CauseAnnotationsTooLarge,
		v1alpha1.CauseInvalidJSON:         conversion.CauseInvalidJSON,
		v1alpha1.CauseOther:               conversion.CauseOther,
		v1alpha1.CauseOverBudget:          conversion.CauseOverBudget,
		v1alpha1.CausePanic:               webhook.CausePanic,
		v1alpha1.CauseTooSlow:             webhook.CauseTooSlow,
		v1alpha1.CauseTruncated:           conversion.CauseTruncated,
		v1alpha1.CauseUnknownVersion:      conversion.CauseUnknownVersion,
		v1alpha1.CauseWrongKind:           conversion.CauseWrongKind,
	} {
		expect.Equal(t, "cause that pods report", string(documented), string(reported))
	}
}
