// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
)

// background runs work beside the reconciliations. The work of a policy has a context of
// its own, which ends when the policy goes, or with the manager. Work that has found
// something wakes its policy, so that no one polls for it.
type background struct {
	root   context.Context
	cancel context.CancelFunc
	// woken are the policies that are to be reconciled.
	woken chan event.GenericEvent

	mu       sync.Mutex
	policies map[string]lifetime
	running  sync.WaitGroup
}

// lifetime is that of the work of one policy.
type lifetime struct {
	context.Context
	cancel context.CancelFunc
	// probes bounds the pods of the policy that are probed at the same time.
	probes slots
}

func newBackground(ctx context.Context) *background {
	b := &background{woken: make(chan event.GenericEvent), policies: map[string]lifetime{}}
	b.root, b.cancel = context.WithCancel(ctx)
	return b
}

// of returns the lifetime of a policy's work, which begins with the first of it.
func (b *background) of(policy string) lifetime {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.begun(policy)
}

func (b *background) begun(policy string) lifetime {
	life, known := b.policies[policy]
	if !known {
		ctx, cancel := context.WithCancel(ctrl.LoggerInto(b.root, ctrl.LoggerFrom(b.root).WithValues("policy", policy)))
		life = lifetime{ctx, cancel, make(slots, probesAtOnce)}
		b.policies[policy] = life
	}
	return life
}

// run starts work for a policy, and does not wait for it. Nothing starts any more while
// the manager is shutting down.
func (b *background) run(policy string, work func(lifetime)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.root.Err() != nil {
		return
	}
	life := b.begun(policy)
	b.running.Go(func() { work(life) })
}

// end cancels the work of a policy that is gone.
func (b *background) end(policy string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if life, known := b.policies[policy]; known {
		life.cancel()
		delete(b.policies, policy)
	}
}

// drain waits for the manager to shut down, and then for all work: an API server probe
// has something to restore.
func (b *background) drain(ctx context.Context) error {
	<-ctx.Done()
	b.mu.Lock()
	b.cancel()
	b.mu.Unlock()
	b.running.Wait()
	return nil
}

// wake has a policy reconciled.
func (b *background) wake(ctx context.Context, policy string) {
	select {
	case b.woken <- event.GenericEvent{Object: &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: policy}}}:
	case <-ctx.Done():
	}
}

// checks are background checks of one kind, at most one at a time for each policy. The
// reconciliation that starts one does not wait: the result wakes the policy.
//
// They are kept in memory only: a manager that starts repeats them, and what was
// proven is in the policies' status.
type checks struct {
	background *background
	now        func() time.Time

	mu    sync.Mutex
	known map[string]*observed.BackgroundCheck
}

func newChecks(b *background, now func() time.Time) *checks {
	return &checks{background: b, now: now, known: map[string]*observed.BackgroundCheck{}}
}

// of returns the latest check of a policy; nil where there was none.
func (c *checks) of(policy string) *observed.BackgroundCheck {
	c.mu.Lock()
	defer c.mu.Unlock()
	check, found := c.known[policy]
	if !found {
		return nil
	}
	latest := *check
	return &latest
}

// running counts the policies with a check under way.
func (c *checks) running() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	count := 0
	for _, check := range c.known {
		if check.Running {
			count++
		}
	}
	return count
}

// start begins a check, unless one of the policy is under way.
func (c *checks) start(policy, subject string, run func(context.Context) observed.BackgroundCheck) {
	c.mu.Lock()
	defer c.mu.Unlock()
	attempts := 1
	if last := c.known[policy]; last != nil {
		if last.Running {
			return
		}
		if last.Subject == subject {
			attempts += last.Attempts
		}
	}
	started := &observed.BackgroundCheck{Subject: subject, Running: true, Attempts: attempts}
	c.known[policy] = started
	c.background.run(policy, func(life lifetime) {
		result := run(life)
		result.Subject, result.Attempts, result.Ended = subject, attempts, c.now()
		if c.finish(policy, started, result) {
			c.background.wake(life, policy)
		}
	})
}

// finish records a result, unless the policy was gone meanwhile.
func (c *checks) finish(policy string, started *observed.BackgroundCheck, result observed.BackgroundCheck) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known[policy] != started {
		return false
	}
	c.known[policy] = &result
	return true
}

// forget the checks of a policy that is gone, also one under way.
func (c *checks) forget(policy string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, policy)
}
