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
// arrival, and while a pod serves several kinds, each may hold half of the limit.
type limiter struct {
	limit   int64
	maxWait time.Duration

	mu   sync.Mutex
	used int64
	// perKind is what one kind may hold. A call that needs more is admitted if its kind holds
	// nothing.
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
	l.admit()
}

// acquire takes an amount for a call of a kind, or the limit if it is smaller, so that any single
// call can proceed. It waits until the end of ctx, or for maxWait. It returns the amount to release.
func (l *limiter) acquire(ctx context.Context, kind *share, amount int64) (int64, error) {
	call, amount := l.enter(kind, amount)
	if call != nil {
		if err := l.wait(ctx, kind, call); err != nil {
			return 0, err
		}
	}
	return amount, nil
}

// enter admits a call at once, or returns its place among the waiting ones. It also returns the
// amount that the call gets.
func (l *limiter) enter(kind *share, amount int64) (*waiter, int64) {
	amount = min(amount, l.limit)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 && l.allows(kind, amount) && l.used+amount <= l.limit {
		l.take(kind, amount)
		return nil, amount
	}
	call := &waiter{amount, make(chan struct{})}
	if len(kind.calls) == 0 {
		l.waiting = append(l.waiting, kind)
	}
	kind.calls = append(kind.calls, call)
	l.admit()
	return call, amount
}

func (l *limiter) wait(ctx context.Context, kind *share, call *waiter) error {
	ctx, cancel := context.WithTimeout(ctx, l.maxWait)
	defer cancel()
	select {
	case <-call.admitted:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.Index(kind.calls, call)
	if at < 0 {
		return nil // admitted meanwhile
	}
	kind.calls = slices.Delete(kind.calls, at, at+1)
	if len(kind.calls) == 0 {
		at = slices.Index(l.waiting, kind)
		l.waiting = slices.Delete(l.waiting, at, at+1)
	}
	l.admit()
	return ctx.Err()
}

func (l *limiter) release(kind *share, amount int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.take(kind, -amount)
	l.admit()
}

// allows reports whether a kind may hold that much more.
func (l *limiter) allows(kind *share, amount int64) bool {
	return kind.used == 0 || kind.used+amount <= l.perKind
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
// processors is acquired by calls that have read their bodies, so that conversions of one kind
// leave processors to the others. One that converts many objects lets other kinds go first after
// each object.
type limiters struct{ first, second, processors *limiter }

// newLimiters splits a limit of bytes between the two of memory.
func newLimiters(bytes int64, processors int) *limiters {
	return &limiters{
		first: newLimiter(bytes-bytes/2, maxWait), second: newLimiter(bytes/2, maxWait),
		processors: newLimiter(int64(max(processors, 2)), callTimeout),
	}
}

// shares are what the calls of one kind hold of the limiters.
type shares struct{ first, second, processors share }

func (l *limiters) serveKinds(count int) {
	for _, limiter := range []*limiter{l.first, l.second, l.processors} {
		limiter.serveKinds(count)
	}
}

// bytes returns the memory that a kind holds, and what it may hold.
func (l *limiters) bytes(kind *shares) (used, limit int64) {
	first, most := l.first.held(&kind.first)
	second, more := l.second.held(&kind.second)
	return first + second, most + more
}
