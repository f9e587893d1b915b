// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
)

// kind is what a Handler has for the kind of one CustomResourceDefinition, so that no kind affects
// another.
type kind struct {
	crd, group, name string
	metrics          *kindMetrics
	failures         *failureLog
	inFlight         atomic.Int64
	held             shares
	// examples selects the failures that are logged at info level.
	examples rate.Sometimes
}

// exampleInterval is how often a failure is logged at info level: often enough to see what is wrong,
// and rarely enough for a million broken objects, which an API server may request repeatedly.
const exampleInterval = time.Minute

func (h *Handler) newKind(ruleset Ruleset) *kind {
	return &kind{crd: ruleset.CRD, group: ruleset.Group, name: ruleset.Kind,
		metrics: newKindMetrics(), failures: newFailureLog(&h.failures, ruleset.CRD, time.Now),
		held:     shares{bodies: holder{part: partOfKind}, objects: map[string]*holder{}},
		examples: rate.Sometimes{Interval: exampleInterval}}
}

// log returns the log for lines about calls of the kind.
func (x *exchange) log() logr.Logger {
	return x.handler.options.Log.WithValues("policy", x.kind.crd, "kind", x.kind.name)
}

// takesTurns reports whether the call takes turns with others for processors: all calls of a pod with several kinds, and
// large ones of a pod with one. One processor is left to small calls: the scheduler of Go looks at connections only every
// 10 ms while none is idle.
func (x *exchange) takesTurns() bool { return len(x.served.kinds) > 1 || len(x.in) > firstBytes }

// beginWork waits for memory to convert, and for a processor.
func (x *exchange) beginWork(ctx context.Context) *refusal {
	x.spare = conversionBytes + textBytes*int64(len(x.in))
	if x.connection != nil {
		x.connection.waiting.Store(0) // until the server has answered
	}
	var err error
	if x.work, err = x.handler.limiters.work.acquire(ctx, &x.kind.held.work, x.spare); err != nil {
		if ctx.Err() == nil {
			return busy()
		}
		return &refusal{http.StatusRequestTimeout, failureCanceled, errAbandoned.Error()}
	}
	return x.takeProcessor(ctx)
}

func (x *exchange) takeProcessor(ctx context.Context) *refusal {
	if !x.takesTurns() {
		return nil
	}
	if _, err := x.handler.limiters.processors.acquire(ctx, &x.kind.held.processors, 1); err != nil {
		return &refusal{http.StatusRequestTimeout, failureCanceled, errAbandoned.Error()}
	}
	x.working = true
	return nil
}

func (x *exchange) endWork() {
	x.returnProcessor()
	x.handler.limiters.work.release(&x.kind.held.work, x.work)
	x.work = 0
}

func (x *exchange) returnProcessor() {
	if x.working {
		x.handler.limiters.processors.release(&x.kind.held.processors, 1)
		x.working = false
	}
}

// mustStop reports whether a conversion must stop: no client waits for it, or it may not have this memory.
func (x *exchange) mustStop(memory int64) bool {
	if x.abandoned() {
		return true
	}
	more := x.spare + memory - x.work
	if more <= 0 {
		return false
	}
	more = max(more, growBytes)
	granted, ever := x.handler.limiters.work.grow(&x.kind.held.work, x.work, more)
	switch {
	case granted:
		x.work += more
	case ever:
		x.refused = busy()
	default:
		x.tooMuch = true
	}
	return !granted
}

// yield lets other kinds that wait for a processor go first. It returns false if the caller gave up
// meanwhile.
func (x *exchange) yield() bool {
	if !x.working {
		return true
	}
	runtime.Gosched()
	if !x.handler.limiters.processors.wantedByOthers(&x.kind.held.processors) {
		return true
	}
	x.returnProcessor()
	return x.takeProcessor(x.ctx) == nil
}

const (
	// sliceBytes is how much of a large body or answer is copied at a time: some ten microseconds.
	sliceBytes = 32 << 10
	// copyTime is how long copying a slice may take before it counts as waiting for the client.
	copyTime = 200 * time.Microsecond
)

// copySlice runs an operation on the connection that copies a slice of a large body or answer. The
// copy and its encryption are work of the kind, as a conversion is: without a processor of the kind
// for them, parallel large calls of one kind would occupy all processors. An operation that waits for
// the client gives its processor back.
func (x *exchange) copySlice(ctx context.Context, operation func() (int, error)) (int, error) {
	defer runtime.Gosched()
	processors, held := x.handler.limiters.processors, &x.kind.held.processors
	if _, err := processors.acquire(ctx, held, 1); err != nil {
		return 0, errAbandoned
	}
	release := func() { processors.release(held, 1) }
	waits := time.AfterFunc(copyTime, release)
	defer func() {
		if waits.Stop() {
			release()
		}
	}()
	return operation()
}

// write sends the answer. A large one is sent in slices.
func (x *exchange) write(ctx context.Context, w http.ResponseWriter) {
	rest := beginWrite(w, http.StatusOK, jsonContent, x.out)
	for x.takesTurns() && len(rest) > firstBytes {
		n, err := x.copySlice(ctx, func() (int, error) { return w.Write(rest[:min(len(rest), sliceBytes)]) })
		if err != nil {
			return // the client has disconnected
		}
		rest = rest[n:]
	}
	_, _ = w.Write(rest)
}
