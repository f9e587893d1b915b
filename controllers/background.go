// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
)

// every calls work after each interval, until the context ends. It returns no error.
func every(ctx context.Context, interval time.Duration, work func(context.Context)) error {
	_ = wait.PollUntilContextCancel(ctx, interval, false, func(ctx context.Context) (bool, error) {
		work(ctx)
		return false, nil
	}) // only the end of the context ends it
	return nil
}

// background runs work outside reconciliations. The work of a policy has its own context, which
// ends when the policy is deleted or the manager shuts down. Work with a new result wakes its
// policy, so that nothing polls for it.
type background struct {
	root   context.Context
	cancel context.CancelFunc
	// woken receives the policies to reconcile, and checked those with the result of a check.
	woken, checked chan event.GenericEvent

	mu       sync.Mutex
	policies map[string]lifetime
	running  sync.WaitGroup
}

// lifetime is the context of one policy's work.
type lifetime struct {
	context.Context
	cancel context.CancelFunc
	// probes bounds how many pods of the policy are probed at the same time.
	probes slots
}

func newBackground(ctx context.Context) *background {
	b := &background{woken: make(chan event.GenericEvent), checked: make(chan event.GenericEvent), policies: map[string]lifetime{}}
	b.root, b.cancel = context.WithCancel(ctx)
	return b
}

// lifetimeOf returns the lifetime of a policy's work, and begins it if necessary.
func (b *background) lifetimeOf(policy string) lifetime {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lifetimeLocked(policy)
}

func (b *background) lifetimeLocked(policy string) lifetime {
	life, known := b.policies[policy]
	if !known {
		ctx, cancel := context.WithCancel(ctrl.LoggerInto(b.root, ctrl.LoggerFrom(b.root).WithValues("policy", policy)))
		life = lifetime{ctx, cancel, make(slots, probesAtOnce)}
		b.policies[policy] = life
	}
	return life
}

// run starts work for a policy and returns immediately. It starts nothing while the manager is
// shutting down.
func (b *background) run(policy string, work func(lifetime)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.root.Err() != nil {
		return
	}
	life := b.lifetimeLocked(policy)
	b.running.Go(func() { work(life) })
}

// end cancels the work of a deleted policy.
func (b *background) end(policy string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if life, known := b.policies[policy]; known {
		life.cancel()
		delete(b.policies, policy)
	}
}

// drain waits for the manager to shut down, and then for all work to finish: an API server probe
// must restore a CustomResourceDefinition.
func (b *background) drain(ctx context.Context) error {
	<-ctx.Done()
	b.mu.Lock()
	b.cancel()
	b.mu.Unlock()
	b.running.Wait()
	return nil
}

// wake enqueues a policy.
func (b *background) wake(ctx context.Context, policy string) { send(ctx, b.woken, policy) }

func send(ctx context.Context, to chan<- event.GenericEvent, policy string) {
	select {
	case to <- event.GenericEvent{Object: &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: policy}}}:
	case <-ctx.Done():
	}
}

// checks are the background checks of one kind, at most one at a time per policy. The
// reconciliation that starts a check does not wait for it: the result wakes the policy.
//
// Results are kept in memory only. A manager that starts repeats the checks; what they proved is
// in the policies' status.
type checks struct {
	background *background
	now        func() time.Time
	// slots bounds how many policies run a check at the same time.
	slots slots

	mu       sync.Mutex
	byPolicy map[string]*observed.BackgroundCheck
	// stops end running checks.
	stops map[string]context.CancelFunc
}

func newChecks(b *background, atOnce slots, now func() time.Time) *checks {
	return &checks{background: b, slots: atOnce, now: now, byPolicy: map[string]*observed.BackgroundCheck{}, stops: map[string]context.CancelFunc{}}
}

// latest returns the latest check of a policy, or nil.
func (c *checks) latest(policy string) *observed.BackgroundCheck {
	c.mu.Lock()
	defer c.mu.Unlock()
	check, found := c.byPolicy[policy]
	if !found {
		return nil
	}
	latest := *check
	return &latest
}

// running returns the number of policies with a running check.
func (c *checks) running() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	count := 0
	for _, check := range c.byPolicy {
		if check.Running {
			count++
		}
	}
	return count
}

// restart is start, except that it ends a running check of another subject, whose result has no use any
// more. The policy is then woken and starts its own.
func (c *checks) restart(policy, subject string, run func(context.Context) observed.BackgroundCheck) {
	c.mu.Lock()
	if last := c.byPolicy[policy]; last != nil && last.Running && last.Subject != subject {
		c.stops[policy]()
	}
	c.mu.Unlock()
	c.start(policy, subject, run)
}

// start begins a check, unless one of the policy is running.
func (c *checks) start(policy, subject string, run func(context.Context) observed.BackgroundCheck) {
	c.mu.Lock()
	defer c.mu.Unlock()
	attempts := 1
	if last := c.byPolicy[policy]; last != nil {
		if last.Running {
			return
		}
		if last.Subject == subject {
			attempts += last.Attempts
		}
	}
	started := &observed.BackgroundCheck{Subject: subject, Running: true, Attempts: attempts}
	c.byPolicy[policy] = started
	ctx, stop := context.WithCancel(c.background.lifetimeOf(policy))
	c.stops[policy] = stop
	c.background.run(policy, func(life lifetime) {
		defer stop()
		result := c.inTurn(ctx, run)
		result.Subject, result.Attempts, result.Ended = subject, attempts, c.now()
		if c.finish(policy, started, result) {
			send(life, c.background.checked, policy)
		}
	})
}

// inTurn runs a check when a slot is free.
func (c *checks) inTurn(ctx context.Context, run func(context.Context) observed.BackgroundCheck) observed.BackgroundCheck {
	if !c.slots.acquire(ctx) {
		return observed.BackgroundCheck{Reason: v1alpha1.ReasonCheckFailed, Message: "the check was cancelled"}
	}
	defer c.slots.release()
	return run(ctx)
}

// finish records a result and reports true, unless the policy was deleted since the start.
func (c *checks) finish(policy string, started *observed.BackgroundCheck, result observed.BackgroundCheck) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byPolicy[policy] != started {
		return false
	}
	c.byPolicy[policy] = &result
	return true
}

// forget drops the check of a deleted policy, even a running one.
func (c *checks) forget(policy string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byPolicy, policy)
	delete(c.stops, policy)
}
