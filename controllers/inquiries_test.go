// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/conversion-operator/conversion-operator/internal/plan"
)

// TestInquiries: one question at a time for each policy, whose answer wakes who asked.
func TestInquiries(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	done := make(chan event.GenericEvent)
	asked := newInquiries(func() time.Time { return now }, done)
	if got := asked.of("a"); got != nil {
		t.Fatalf("known before anything was asked: %+v", got)
	}
	answers := make(chan plan.Inquiry)
	find := func(context.Context) plan.Inquiry { return <-answers }
	asked.ask(t.Context(), "a", "one", find)
	asked.ask(t.Context(), "a", "two", find) // not while the first goes on
	asked.forget("a")                        // nor is that forgotten
	check(t, asked, plan.Inquiry{Subject: "one", Asking: true, Attempts: 1})

	for _, next := range []plan.Inquiry{
		{Subject: "one", Asking: true, Attempts: 2},
		{Subject: "another", Asking: true, Attempts: 1},
	} {
		answers <- plan.Inquiry{Objects: 3}
		if woken := <-done; woken.Object.GetName() != "a" {
			t.Errorf("wakes %s, want a", woken.Object.GetName())
		}
		if last := asked.of("a"); last.Asking || last.Objects != 3 || !last.Ended.Equal(now) {
			t.Errorf("after the answer it is %+v", last)
		}
		asked.ask(t.Context(), "a", next.Subject, find)
		check(t, asked, next)
	}
	answers <- plan.Inquiry{}
	<-done
	asked.forget("a")
	if got := asked.of("a"); got != nil {
		t.Errorf("still known after it was forgotten: %+v", got)
	}
}

func check(t *testing.T, asked *inquiries, want plan.Inquiry) {
	t.Helper()
	if diff := cmp.Diff(&want, asked.of("a")); diff != "" {
		t.Errorf("inquiry (-want +got):\n%s", diff)
	}
}
