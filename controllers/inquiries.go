// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan"
)

// inquiries are questions that take their time. They are asked in the background,
// one at a time for each policy, so that reconciling waits for none. Who asks has
// the answer at the next look, which the answer brings about.
//
// They are kept in memory only: a manager that starts asks anew, and what was
// proven is in the policies' status.
type inquiries struct {
	now  func() time.Time
	done chan<- event.GenericEvent

	mu    sync.Mutex
	known map[string]plan.Inquiry
}

func newInquiries(now func() time.Time, done chan<- event.GenericEvent) *inquiries {
	return &inquiries{now: now, done: done, known: map[string]plan.Inquiry{}}
}

// of returns what is known about a policy; nil where nothing was asked.
func (q *inquiries) of(policy string) *plan.Inquiry {
	q.mu.Lock()
	defer q.mu.Unlock()
	inquiry, found := q.known[policy]
	if !found {
		return nil
	}
	return &inquiry
}

// underWay counts the policies about which something is being found out.
func (q *inquiries) underWay() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	count := 0
	for _, inquiry := range q.known {
		if inquiry.Asking {
			count++
		}
	}
	return count
}

// ask starts an inquiry, unless one about the policy is under way.
func (q *inquiries) ask(ctx context.Context, policy, subject string, find func(context.Context) plan.Inquiry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	last := q.known[policy]
	if last.Asking {
		return
	}
	attempts := 1
	if last.Subject == subject {
		attempts += last.Attempts
	}
	q.known[policy] = plan.Inquiry{Subject: subject, Asking: true, Attempts: attempts}
	go q.run(ctx, policy, subject, attempts, find)
}

func (q *inquiries) run(ctx context.Context, policy, subject string, attempts int, find func(context.Context) plan.Inquiry) {
	answer := find(ctx)
	answer.Subject, answer.Attempts, answer.Ended = subject, attempts, q.now()
	q.mu.Lock()
	q.known[policy] = answer
	q.mu.Unlock()
	about := &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: policy}}
	select {
	case q.done <- event.GenericEvent{Object: client.Object(about)}:
	case <-ctx.Done():
	}
}

// forget what was asked about a policy that is gone.
func (q *inquiries) forget(policy string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.known[policy].Asking {
		delete(q.known, policy)
	}
}
