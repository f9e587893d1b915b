// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestLimiterStopsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, kind := newLimiter(10, 0, maxWait), share{}
		_, err := l.acquire(t.Context(), &kind, 10)
		expect.NoError(t, err)
		began := time.Now() // synctest advances this clock while all goroutines wait
		held, err := l.acquire(t.Context(), &kind, 1)
		expect.Equal(t, "error", context.DeadlineExceeded, err, cmpopts.EquateErrors())
		expect.Equal(t, "waited", maxWait, time.Since(began))
		expect.Equal(t, "held", 0, held)

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err = l.acquire(ctx, &kind, 1)
		expect.Equal(t, "error", context.Canceled, err, cmpopts.EquateErrors())
		expect.Equal(t, "waited until the client went away", maxWait+time.Second, time.Since(began))
		expect.Equal(t, "used", 10, kind.used)
	})
}

// makeBusy makes a handler refuse calls, which find no memory to convert.
func makeBusy(t *testing.T, handler *Handler) {
	t.Helper()
	work := handler.limiters.work
	work.maxWait = 0
	_, err := work.acquire(t.Context(), new(share), work.limit)
	expect.NoError(t, err)
}

// TestLimiterIsFairToKinds: one kind floods, and the calls of others are admitted all the same.
func TestLimiterIsFairToKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(4, 0, maxWait)
		l.serveKinds(3)
		kinds := map[string]*share{"a": {}, "b": {}, "c": {}}
		var mu sync.Mutex
		var admitted []string
		call := func(kind string, amount int64) {
			go func() {
				held, err := l.acquire(t.Context(), kinds[kind], amount)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				admitted = append(admitted, fmt.Sprint(kind, held))
			}()
			synctest.Wait()
		}
		admits := func(when string, want ...string) {
			t.Helper()
			synctest.Wait()
			slices.Sort(admitted)
			expect.Equal(t, when, want, admitted)
			admitted = nil
		}
		for range 6 {
			call("a", 1)
		}
		admits("a kind alone holds half", "a1", "a1")
		call("b", 1)
		call("b", 1)
		admits("the other half is for others, ahead of those that wait", "b1", "b1")
		call("b", 1)
		call("c", 3)
		call("c", 1)
		l.release(kinds["a"], 1)
		admits("kinds take turns: a was first", "a1")
		l.release(kinds["b"], 1)
		admits("b is next", "b1")
		l.release(kinds["a"], 1)
		admits("no kind overtakes c, which needs more than is free")
		l.release(kinds["a"], 1)
		admits("c gets no more than its half", "c2")
		l.release(kinds["b"], 2)
		admits("c holds its half and misses its turns", "a1", "a1")
		l.release(kinds["c"], 2)
		admits("a holds its half", "c1")
		l.release(kinds["a"], 2)
		admits("the last one", "a1")
	})
}

// TestLimiterForgetsWhoLeft: a call that no longer waits does not hold up others.
func TestLimiterForgetsWhoLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(4, 0, maxWait)
		l.serveKinds(3)
		var a, b, c share
		for _, kind := range []*share{&a, &a, &c} {
			_, _ = l.acquire(t.Context(), kind, 1)
		}
		ctx, leave := context.WithCancel(t.Context())
		go func() { _, _ = l.acquire(ctx, &b, 3) }()
		synctest.Wait()
		admitted := false
		go func() {
			_, err := l.acquire(t.Context(), &b, 1)
			admitted = err == nil
		}()
		synctest.Wait()
		expect.Equal(t, "admitted behind a larger call", false, admitted)
		leave()
		synctest.Wait()
		expect.Equal(t, "admitted when that has left", true, admitted)
		l.release(&a, 2)
		l.release(&b, 1)
		l.release(&c, 1)
		expect.Equal(t, "used", 0, l.used)
		expect.Equal(t, "waiting kinds", 0, len(l.waiting))
	})
}

// TestLimiterGrows: a call gets more only at once, and not so much that others cannot begin.
func TestLimiterGrows(t *testing.T) {
	l := newLimiter(10, 0, 0)
	var a, b share
	_, err := l.acquire(t.Context(), &a, 2)
	expect.NoError(t, err)
	_, err = l.acquire(t.Context(), &b, 4)
	expect.NoError(t, err)
	for _, want := range []struct {
		more          int64
		granted, ever bool
	}{{3, true, true}, {1, true, true}, {1, false, false}} {
		granted, ever := l.grow(&a, a.used, want.more)
		expect.Equal(t, fmt.Sprint(want.more, " more"), []bool{want.granted, want.ever}, []bool{granted, ever})
	}
	granted, ever := l.grow(&b, b.used, 1)
	expect.Equal(t, "of what another has", []bool{false, true}, []bool{granted, ever})
	expect.Equal(t, "used", 10, l.used)
}

// TestLimiterWithMoreKinds: a call that waits while the pod begins to serve a second kind gets no more
// than its kind may hold from then on.
func TestLimiterWithMoreKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(4, 0, maxWait)
		var a share
		first, _ := l.acquire(t.Context(), &a, 100)
		expect.Equal(t, "held by a kind that is alone", 4, first)
		var second int64
		go func() { second, _ = l.acquire(t.Context(), &a, 100) }()
		synctest.Wait()
		l.serveKinds(2)
		l.release(&a, first)
		synctest.Wait()
		expect.Equal(t, "held by one of two", 2, second)
		expect.Equal(t, "used", 2, l.used)
	})
}
