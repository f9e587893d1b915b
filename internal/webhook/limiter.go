// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// maxWait is how long a call waits for memory to convert. API servers abandon a call after 30 s. If told to,
// they retry before that, possibly at another pod.
const maxWait = 10 * time.Second

// limiter bounds what all concurrent calls hold together: bytes of memory, or processors. It is
// fair to kinds: waiting kinds take turns, calls of one kind are admitted in the order of their
// arrival, and while a pod serves several kinds, each may hold half of the limit. A single kind may hold all but what is
// spare. A call that needs more than its kind may hold gets that, so that any single call can proceed.
type limiter struct {
	limit, spare int64
	maxWait      time.Duration

	mu   sync.Mutex
	used int64
	// perKind is what one of the kinds may hold.
	perKind int64
	kinds   int
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

func newLimiter(limit, spare int64, maxWait time.Duration) *limiter {
	return &limiter{limit: limit, spare: spare, maxWait: maxWait, perKind: limit - spare}
}

// serveKinds sets how many kinds the limiter is for.
func (l *limiter) serveKinds(count int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kinds = count
	l.divide()
}

// resize sets the limit.
func (l *limiter) resize(limit int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limit = limit
	l.divide()
}

// divide sets what each kind may hold. The caller must hold l.mu.
func (l *limiter) divide() {
	l.perKind = l.limit - l.spare
	if l.kinds > 1 {
		l.perKind = l.limit - l.limit/2
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

// grow takes more for a call that holds something, without a wait. A call has at most three quarters of the limit,
// so that it cannot keep others from beginning. ever is false if it would get that much at no time.
func (l *limiter) grow(kind *share, held, more int64) (granted, ever bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if held+more > l.limit/4*3 {
		return false, false
	}
	if kind.used > held && !l.allows(kind, more) || l.used+more > l.limit {
		return false, true
	}
	l.take(kind, more)
	return true, true
}

// allows reports whether a kind may hold that much more.
func (l *limiter) allows(kind *share, amount int64) bool { return kind.used+amount <= l.perKind }

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

// limiters are the limits of a Handler.
//
// A call takes memory of bodies for its body, as that arrives, and for its answer. If there is none, it is
// refused, because a call that waits would keep what it has. With its body, it waits for memory to convert,
// which it has only while it converts, so that there is no deadlock. A conversion that needs more than was
// estimated takes it if it is there.
//
// processors is acquired by calls that have read their bodies, and to copy each slice of a large body
// or answer, so that one kind leaves processors to the others, and large calls of a single kind one to its small calls,
// which need none. A call that converts many objects lets other kinds go first after each object.
type limiters struct {
	bodies           budget
	work, processors *limiter
	// connections is how many there may be.
	connections atomic.Int64
}

// newLimiters divides a number of bytes.
func newLimiters(bytes int64, processors int) *limiters {
	l := &limiters{work: newLimiter(0, 0, maxWait), processors: newLimiter(int64(max(processors, 2)), 1, callTimeout)}
	l.resize(bytes)
	return l
}

// resize divides another number of bytes.
func (l *limiters) resize(bytes int64) {
	part := max(bytes/6, leastPart)
	l.connections.Store(max(part/connectionBytes, leastConnections))
	l.bodies.mu.Lock()
	l.bodies.limit = part
	l.bodies.mu.Unlock()
	l.work.resize(3 * part)
}

// used is the memory that all calls hold.
func (l *limiters) used() int64 {
	l.work.mu.Lock()
	defer l.work.mu.Unlock()
	l.bodies.mu.Lock()
	defer l.bodies.mu.Unlock()
	return l.work.used + l.bodies.used
}

// shares are what the calls of one kind hold of the limiters.
type shares struct {
	bodies           holder
	work, processors share
	// objects are what calls hold for objects and for namespaces.
	objects map[string]*holder
}

func (l *limiters) serveKinds(count int) {
	l.work.serveKinds(count)
	l.processors.serveKinds(count)
}

// bytes returns the memory that a kind holds, and what it may hold.
func (l *limiters) bytes(kind *shares) (used, limit int64) {
	used, limit = l.work.held(&kind.work)
	l.bodies.mu.Lock()
	defer l.bodies.mu.Unlock()
	return used + kind.bodies.used, limit + l.bodies.limit/2
}
