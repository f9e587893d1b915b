// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// patience is how long a call waits for memory. An API server gives a call up
// after 30 s, and tries again before if it is told to: by then, at another pod.
const patience = 10 * time.Second

// limiter bounds the memory of all calls together. Those that find no room wait,
// first come, first served.
type limiter struct {
	limit    int64
	patience time.Duration
	room     *semaphore.Weighted
	used     atomic.Int64
}

func newLimiter(limit int64) *limiter {
	return &limiter{limit: limit, patience: patience, room: semaphore.NewWeighted(limit)}
}

// enter takes that many bytes, or what there is in all if that is less: a call may
// always go on alone. It waits for them, but neither beyond the end of ctx nor
// longer than its patience. It returns what is to be given back to leave.
func (g *limiter) enter(ctx context.Context, bytes int64) (int64, error) {
	bytes = min(bytes, g.limit)
	if !g.room.TryAcquire(bytes) {
		ctx, cancel := context.WithTimeout(ctx, g.patience)
		defer cancel()
		if err := g.room.Acquire(ctx, bytes); err != nil {
			return 0, err
		}
	}
	g.used.Add(bytes)
	return bytes, nil
}

func (g *limiter) leave(held int64) {
	g.used.Add(-held)
	g.room.Release(held)
}

// limiters are passed one after the other: the first by every call for the beginning
// of its body, the second by those that have more. Who waits at the second holds
// nothing that a client behind it needs, so calls never wait for each other. And
// a client that promises a large body and does not send it is in the way of
// large bodies only.
type limiters struct{ first, second *limiter }

// newLimiters shares a limit between the two.
func newLimiters(limit int64) *limiters {
	return &limiters{first: newLimiter(limit - limit/2), second: newLimiter(limit / 2)}
}

func (g *limiters) limit() int64 { return g.first.limit + g.second.limit }

func (g *limiters) used() int64 { return g.first.used.Load() + g.second.used.Load() }
