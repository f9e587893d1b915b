// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// maxWait is how long a call waits for memory. API servers abandon a call after 30 s. If told to,
// they retry before that, possibly at another pod.
const maxWait = 10 * time.Second

// limiter bounds the memory of all concurrent calls. Calls wait in the order of their arrival.
type limiter struct {
	limit     int64
	maxWait   time.Duration
	semaphore *semaphore.Weighted
	used      atomic.Int64
}

func newLimiter(limit int64) *limiter {
	return &limiter{limit: limit, maxWait: maxWait, semaphore: semaphore.NewWeighted(limit)}
}

// acquire reserves that many bytes, or the limit if it is smaller, so that any single call can
// proceed. It waits until the end of ctx, or for maxWait. It returns the number of bytes to
// release.
func (l *limiter) acquire(ctx context.Context, bytes int64) (int64, error) {
	bytes = min(bytes, l.limit)
	if !l.semaphore.TryAcquire(bytes) {
		ctx, cancel := context.WithTimeout(ctx, l.maxWait)
		defer cancel()
		if err := l.semaphore.Acquire(ctx, bytes); err != nil {
			return 0, err
		}
	}
	l.used.Add(bytes)
	return bytes, nil
}

func (l *limiter) release(held int64) {
	l.used.Add(-held)
	l.semaphore.Release(held)
}

// limiters are acquired one after the other: the first by every call for the start of its body, the
// second by calls with longer bodies. A call that waits for the second limiter holds nothing that
// the calls ahead of it need, so there is no deadlock. A client that announces a large body and
// does not send it only delays other large bodies.
type limiters struct{ first, second *limiter }

// newLimiters splits a limit between the two.
func newLimiters(limit int64) *limiters {
	return &limiters{first: newLimiter(limit - limit/2), second: newLimiter(limit / 2)}
}

func (l *limiters) limit() int64 { return l.first.limit + l.second.limit }

func (l *limiters) used() int64 { return l.first.used.Load() + l.second.used.Load() }
