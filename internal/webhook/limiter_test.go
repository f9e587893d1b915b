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
		g := newLimiter(10)
		held, err := g.enter(t.Context(), 10)
		wantEqual(t, "the first call holds", 10, held)
		wantEqual(t, "error of the first call", nil, err)

		var second int64
		go func() { second, _ = g.enter(t.Context(), 4) }()
		synctest.Wait()
		wantEqual(t, "the second call holds, before there is room", 0, second)

		g.leave(held)
		synctest.Wait()
		wantEqual(t, "the second call holds, with room", 4, second)
		wantEqual(t, "used", 4, g.used.Load())
	})
}

func TestLimiterLosesPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLimiter(10)
		if _, err := g.enter(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		began := time.Now() // of a clock that goes on when everyone waits
		held, err := g.enter(t.Context(), 1)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v", err)
		}
		wantEqual(t, "waited", patience, time.Since(began))
		wantEqual(t, "held", 0, held)

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err = g.enter(ctx, 1)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error is %v", err)
		}
		wantEqual(t, "waited until the client went away", patience+time.Second, time.Since(began))
		wantEqual(t, "used", 10, g.used.Load())
	})
}

func TestLimiterLetsACallGoOnAlone(t *testing.T) {
	g := newLimiter(10)
	held, err := g.enter(t.Context(), 100)
	wantEqual(t, "error of a call that is larger than all room", nil, err)
	wantEqual(t, "held by it", 10, held)
	g.leave(held)
	wantEqual(t, "used", 0, g.used.Load())
}

func TestLimitersShareTheLimit(t *testing.T) {
	for _, limit := range []int64{1, 10, 11} {
		g := newLimiters(limit)
		wantEqual(t, "limit", limit, g.limit())
		if _, err := g.first.enter(t.Context(), limit); err != nil {
			t.Fatal(err)
		}
		if _, err := g.second.enter(t.Context(), limit); err != nil {
			t.Fatal(err)
		}
		wantEqual(t, "used", limit, g.used())
	}
}
