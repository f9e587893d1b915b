// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"slices"
	"sync"
	"time"
)

// maxWait is how long a call waits for memory. API servers abandon a call after 30 s. If told to,
// they retry before that, possibly at another pod.
const maxWait = 10 * time.Second

// limiter bounds what all concurrent calls hold together: bytes of memory, or processors. It is
// fair to kinds: waiting kinds take turns, calls of one kind are admitted in the order of their
// arrival, and while a pod serves several kinds, each may hold half of the limit. A call that needs
// more gets that half, so that any single call can proceed.
type limiter struct {
	limit   int64
	maxWait time.Duration

	mu   sync.Mutex
	used int64
	// perKind is what one kind may hold.
	perKind int64
	// waiting are the kinds with waiting calls, in the order of their turns.
	waiting []*share
}

// share is what the calls of one kind hold of a limiter, and the calls that wait.
type share struct {
	used  int64
	calls []*waiter
}

// waiter is a call that waits until admitted is closed.
type waiter struct {
	amount   int64
	admitted chan struct{}
}

func newLimiter(limit int64, maxWait time.Duration) *limiter {
	return &limiter{limit: limit, maxWait: maxWait, perKind: limit}
}

// serveKinds sets how many kinds the limiter is for.
func (l *limiter) serveKinds(count int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.perKind = l.limit
	if count > 1 {
		l.perKind -= l.limit / 2
	}
	for _, kind := range l.waiting {
		for _, call := range kind.calls {
			call.amount = min(call.amount, l.perKind)
		}
	}
	l.admit()
}

// acquire takes an amount for a call of a kind, or the kind's part of the limit if that is smaller. It
// waits until the end of ctx, or for maxWait. It returns the amount to release.
func (l *limiter) acquire(ctx context.Context, kind *share, amount int64) (int64, error) {
	held, call := l.enter(kind, amount)
	if call == nil {
		return held, nil
	}
	return l.wait(ctx, kind, call)
}

// enter admits a call at once, and returns what it holds, or its place among the waiting ones.
func (l *limiter) enter(kind *share, amount int64) (int64, *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	amount = min(amount, l.perKind)
	if len(l.waiting) == 0 && l.allows(kind, amount) && l.used+amount <= l.limit {
		l.take(kind, amount)
		return amount, nil
	}
	call := &waiter{amount, make(chan struct{})}
	if len(kind.calls) == 0 {
		l.waiting = append(l.waiting, kind)
	}
	kind.calls = append(kind.calls, call)
	l.admit()
	return 0, call
}

// wait returns what a waiting call holds once it is admitted.
func (l *limiter) wait(ctx context.Context, kind *share, call *waiter) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, l.maxWait)
	defer cancel()
	select {
	case <-call.admitted:
		return call.amount, nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.Index(kind.calls, call)
	if at < 0 {
		return call.amount, nil // admitted meanwhile
	}
	kind.calls = slices.Delete(kind.calls, at, at+1)
	if len(kind.calls) == 0 {
		at = slices.Index(l.waiting, kind)
		l.waiting = slices.Delete(l.waiting, at, at+1)
	}
	l.admit()
	return 0, ctx.Err()
}

func (l *limiter) release(kind *share, amount int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.take(kind, -amount)
	l.admit()
}

// allows reports whether a kind may hold that much more.
func (l *limiter) allows(kind *share, amount int64) bool { return kind.used+amount <= l.perKind }

// exceedsPart reports whether an amount is more than a kind may hold.
func (l *limiter) exceedsPart(amount int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return amount > l.perKind
}

func (l *limiter) take(kind *share, amount int64) {
	l.used += amount
	kind.used += amount
}

// admit admits waiting calls. A kind that holds its part of the limit misses its turn. No kind
// overtakes a call that only waits for others to release enough. The caller must hold l.mu.
func (l *limiter) admit() {
	for i := 0; i < len(l.waiting); {
		kind := l.waiting[i]
		call := kind.calls[0]
		switch {
		case !l.allows(kind, call.amount):
			i++
			continue
		case l.used+call.amount > l.limit:
			return
		}
		l.take(kind, call.amount)
		close(call.admitted)
		kind.calls = slices.Delete(kind.calls, 0, 1)
		l.waiting = slices.Delete(l.waiting, i, i+1)
		if len(kind.calls) > 0 {
			l.waiting = append(l.waiting, kind)
		}
	}
}

// wantedByOthers reports whether calls of other kinds wait that would be admitted if this kind
// released something.
func (l *limiter) wantedByOthers(kind *share) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.waiting, func(other *share) bool { return other != kind && l.allows(other, other.calls[0].amount) })
}

// held returns what the calls of a kind hold, and what they may hold.
func (l *limiter) held(kind *share) (used, limit int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return kind.used, l.perKind
}

// limiters are the limiters of a Handler.
//
// Those of memory are acquired one after the other: first by every call for the start of its body,
// second by calls with longer bodies. A call that waits for the second limiter holds nothing that
// the calls ahead of it need, so there is no deadlock. A client that announces a large body and
// does not send it only delays other large bodies.
//
// A body that needs more of the second limiter than its kind may hold also acquires oversized, before
// that, so that one such body at a time is read in the whole pod. It takes the part of its kind, and
// leaves the other half to others. The rest of what it needs is not counted: with the default limits,
// up to 32 MiB above 128 MiB, in a pod with 256 MiB. To refuse it would be no better: with a low
// limit, it may be a single object. API servers send one object of at most 3 MiB at a time, so such
// bodies come from other clients or from low limits.
//
// processors is acquired by calls that have read their bodies, and to copy each slice of a large body
// or answer, so that one kind leaves processors to the others. A call that converts many objects lets
// other kinds go first after each object.
type limiters struct{ first, second, oversized, processors *limiter }

// newLimiters splits a limit of bytes between the two of memory.
func newLimiters(bytes int64, processors int) *limiters {
	return &limiters{
		first: newLimiter(bytes-bytes/2, maxWait), second: newLimiter(bytes/2, maxWait), oversized: newLimiter(1, maxWait),
		processors: newLimiter(int64(max(processors, 2)), callTimeout),
	}
}

// shares are what the calls of one kind hold of the limiters.
type shares struct{ first, second, oversized, processors share }

func (l *limiters) serveKinds(count int) {
	for _, limiter := range []*limiter{l.first, l.second, l.oversized, l.processors} {
		limiter.serveKinds(count)
	}
}

// bytes returns the memory that a kind holds, and what it may hold.
func (l *limiters) bytes(kind *shares) (used, limit int64) {
	first, most := l.first.held(&kind.first)
	second, more := l.second.held(&kind.second)
	return first + second, most + more
}
