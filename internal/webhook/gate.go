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

// gate bounds the memory of all calls together. Those that find no room wait,
// first come, first served.
type gate struct {
	limit    int64
	patience time.Duration
	room     *semaphore.Weighted
	used     atomic.Int64
}

func newGate(limit int64) *gate {
	return &gate{limit: limit, patience: patience, room: semaphore.NewWeighted(limit)}
}

// enter takes so many bytes, or what there is in all if that is less: a call may
// always go on alone. It waits for them, but neither beyond the end of ctx nor
// longer than its patience. It returns what is to be given back to leave.
func (g *gate) enter(ctx context.Context, bytes int64) (int64, error) {
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

// widen takes more bytes on top of those that a call holds, unless it would have
// to wait. It returns what the call holds then.
func (g *gate) widen(held, more int64) (int64, bool) {
	more = min(more, g.limit-held)
	if more > 0 && !g.room.TryAcquire(more) {
		return held, false
	}
	g.used.Add(more)
	return held + more, true
}

func (g *gate) leave(held int64) {
	g.used.Add(-held)
	g.room.Release(held)
}
