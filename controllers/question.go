// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/conversion-operator/conversion-operator/internal/plan"
)

// probePatience is how long a reconciliation waits for the answer of a pod. A pod
// that hangs must not keep the policy from undoing what somebody writes to the
// CustomResourceDefinition meanwhile.
const probePatience = time.Second

// question is what a pod is asked.
type question struct {
	pod types.UID
	fingerprint
}

// inquiry asks one question. It goes on while reconciliations come and go, and
// the next one reads what it has found.
type inquiry struct {
	done chan struct{}
	// found is the answer, once done is closed.
	found *plan.Proof
	// before is what was found when the same was asked before, or nil.
	before *plan.Proof
	// read tells that a reconciliation has had the answer.
	read bool
}

// questions are those that have no good answer yet, with their latest inquiry.
type questions struct {
	mu    sync.Mutex
	known map[question]*inquiry
}

// ask asks, and waits for a moment. It returns nil where the answer takes its
// time, or what was found before.
func (i *questions) ask(ctx context.Context, asked question, probe func() *plan.Proof) *plan.Proof {
	under := i.start(asked, probe)
	patience := time.NewTimer(probePatience)
	defer patience.Stop()
	select {
	case <-under.done:
	case <-patience.C:
		return under.before
	case <-ctx.Done():
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	under.read = true
	if good := under.found == nil || under.found.Reason == ""; good && i.known[asked] == under {
		delete(i.known, asked)
	}
	return under.found
}

// start returns the inquiry that is under way or whose answer nobody has read,
// and begins one where there is none. It forgets everything once it knows too
// much: pods come and go.
func (i *questions) start(asked question, probe func() *plan.Proof) *inquiry {
	const most = 10_000
	i.mu.Lock()
	defer i.mu.Unlock()
	last := i.known[asked]
	if last != nil && !last.read {
		return last
	}
	next := &inquiry{done: make(chan struct{})}
	if last != nil {
		next.before = last.found
	}
	if i.known == nil || len(i.known) >= most {
		i.known = map[question]*inquiry{}
	}
	i.known[asked] = next
	go func() {
		defer close(next.done)
		next.found = probe()
	}()
	return next
}
