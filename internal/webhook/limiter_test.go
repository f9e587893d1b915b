// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestLimiterWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(10)
		held, err := l.acquire(t.Context(), 10)
		wantEqual(t, "the first call holds", 10, held)
		wantEqual(t, "error of the first call", nil, err)

		var second int64
		go func() { second, _ = l.acquire(t.Context(), 4) }()
		synctest.Wait()
		wantEqual(t, "the second call holds, before there is room", 0, second)

		l.release(held)
		synctest.Wait()
		wantEqual(t, "the second call holds, with room", 4, second)
		wantEqual(t, "used", 4, l.used.Load())
	})
}

func TestLimiterStopsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(10)
		if _, err := l.acquire(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		began := time.Now() // synctest advances this clock while all goroutines wait
		held, err := l.acquire(t.Context(), 1)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v", err)
		}
		wantEqual(t, "waited", maxWait, time.Since(began))
		wantEqual(t, "held", 0, held)

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err = l.acquire(ctx, 1)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error is %v", err)
		}
		wantEqual(t, "waited until the client went away", maxWait+time.Second, time.Since(began))
		wantEqual(t, "used", 10, l.used.Load())
	})
}

func TestLimiterAdmitsASingleLargeCall(t *testing.T) {
	l := newLimiter(10)
	held, err := l.acquire(t.Context(), 100)
	wantEqual(t, "error of a call that is larger than the limit", nil, err)
	wantEqual(t, "held by it", 10, held)
	l.release(held)
	wantEqual(t, "used", 0, l.used.Load())
}

func TestLimitersShareTheLimit(t *testing.T) {
	for _, limit := range []int64{1, 10, 11} {
		l := newLimiters(limit)
		wantEqual(t, "limit", limit, l.limit())
		if _, err := l.first.acquire(t.Context(), limit); err != nil {
			t.Fatal(err)
		}
		if _, err := l.second.acquire(t.Context(), limit); err != nil {
			t.Fatal(err)
		}
		wantEqual(t, "used", limit, l.used())
	}
}
