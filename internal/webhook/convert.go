// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
)

// pooledBytes is the largest buffer that is kept for the next call, enough for a
// list of 500 objects of 10 KB.
const pooledBytes = 8 << 20

// spare is the part of a body's size by which its answer may be longer before it
// has to move.
const spare = 8

// callTimeout is when an API server has given a call up, which its connection does
// not always show: k8s.io/apiserver/pkg/util/webhook waits that long.
const callTimeout = 30 * time.Second

// errPanic stands for a panic of the converter. What it was about is in the log only.
var errPanic = errors.New("internal error of the converter, its cause is in the log of the converter pod")

// errStopped ends the walk through a review in which an object failed.
var errStopped = errors.New("stopped")

// exchange is one call: the memory that it uses, and how far it has come.
type exchange struct {
	handler *Handler
	// ruleset is the hash that the path names, and converter that of the ruleset.
	ruleset   string
	converter Converter
	// agent is what the caller calls itself.
	agent string
	// ctx is that of the call, and began is when the call did, by the clock.
	ctx   context.Context
	began time.Duration
	// stop is gone, made once.
	stop func() bool
	// in is the body, and out the answer.
	in, out []byte
	// passed are the limiters that the call has passed.
	passed  []passage
	scanner scanner
	review  review
	// begun tells that the answer was begun, so that objects can be appended.
	begun bool
	// target is what is known of the version to convert to.
	target *target
	// count is how many objects were converted, and converting how long that took.
	count      int
	converting time.Duration
	// object begins with what is being converted. It goes on behind it.
	object []byte
	// failure and cause tell why the review is answered by a failure, if it is.
	failure failure
	cause   error
}

// passage is a limiter and what is to be given back there.
type passage struct {
	gate *limiter
	held int64
}

var exchanges = sync.Pool{New: func() any {
	x := new(exchange)
	x.stop = x.gone
	return x
}}

// clock tells how long a call takes: the time since the program began. That costs
// half of what time.Now does, which asks for the time of day as well.
func clock() time.Duration { return time.Since(programBegan) }

var programBegan = time.Now()

func (h *Handler) newExchange() *exchange {
	x := exchanges.Get().(*exchange)
	x.handler, x.began = h, clock()
	return x
}

// gone reports whether the caller has stopped waiting for the answer.
func (x *exchange) gone() bool { return x.ctx.Err() != nil || clock()-x.began > callTimeout }

func (x *exchange) release() {
	for _, passage := range x.passed {
		passage.gate.leave(passage.held)
	}
	x.handler.metrics.inFlight.Dec()
	// A converter that panicked may still hold on to what it was given.
	if cap(x.in) > pooledBytes || cap(x.out) > pooledBytes || x.failure == failurePanic {
		return
	}
	*x = exchange{in: x.in[:0], out: x.out[:0], passed: x.passed[:0], stop: x.stop}
	exchanges.Put(x)
}

// convert answers a ConversionReview: all objects or a failure. Only a request
// that is not a review at all gets an HTTP error.
func (h *Handler) convert(w http.ResponseWriter, r *http.Request, hash string) {
	x := h.newExchange()
	h.metrics.inFlight.Inc()
	defer x.release()

	x.agent = r.UserAgent()
	refused := x.choose(hash)
	if refused == nil {
		refused = x.receive(r)
	}
	if refused == nil {
		refused = x.respond(r.Context())
	}
	if refused == nil {
		write(w, http.StatusOK, jsonContent, x.out)
	} else {
		x.failure = refused.failure
		refuse(w, refused)
	}
	h.metrics.request(x)
}

// choose takes the ruleset that the path names. A pod that is about to end or to be
// replaced may lack it while others have it: an API server is told to try again.
func (x *exchange) choose(hash string) *refusal {
	var found bool
	x.ruleset = hash
	if x.converter, found = x.handler.converters[hash]; found {
		return nil
	}
	return &refusal{http.StatusServiceUnavailable, failureUnknownRuleset, fmt.Sprintf(
		"this converter pod does not have the rules %q, it has %s: see the conditions of the ConversionPolicy %s",
		hash, strings.Join(x.handler.hashes, " and "), x.handler.options.CRD)}
}

// respond reads the review that was received and leaves the answer in out. A
// panic is answered too, so that the answer still carries the uid: without it,
// the API server would report a mismatch of uids instead of the failure.
func (x *exchange) respond(ctx context.Context) (refused *refusal) {
	defer func() {
		if cause := recover(); cause != nil {
			refused = x.panicked(cause)
		}
	}()
	x.scanner, x.ctx = scanner{data: x.in}, ctx
	err := x.read()
	switch {
	case x.cause != nil:
		x.answerFailure()
	case err != nil:
		return &refusal{http.StatusBadRequest, failureInvalidReview, fmt.Sprintf("not a usable ConversionReview: %s", err)}
	default:
		x.out = appendSuccess(x.out)
	}
	return nil
}

// begin appends the head of the answer, and reports whether objects can follow.
func (x *exchange) begin() bool {
	x.begun = true
	x.out = appendHead(slices.Grow(x.out[:0], len(x.in)+len(x.in)/spare), &x.review)
	x.target = x.handler.targets[string(x.review.desired)]
	if x.target != nil {
		return true
	}
	if x.review.isProbe() {
		x.answerProbe()
		return true
	}
	version, err := x.review.target(x.handler.options.Group)
	if err != nil {
		x.fail(failureInvalidReview, err)
		return false
	}
	// The converter knows what to say about a version that it does not know.
	x.target = x.handler.metrics.unknownTarget(version)
	return true
}

// fail gives the review up.
func (x *exchange) fail(failure failure, cause error) {
	x.failure, x.cause = failure, cause
	x.scanner.fail(errStopped)
}

func (x *exchange) answerFailure() {
	h := x.handler
	h.options.Log.V(h.examples.level(time.Now())).Info("Conversion failed", "uid", string(x.review.uid), "desiredAPIVersion", string(x.review.desired),
		"converted", x.count, "error", x.cause.Error())
	x.out = appendFailure(appendHead(x.out[:0], &x.review), x.cause.Error())
}

// panicked makes a failure of a panic, or a refusal if the review has no uid yet.
func (x *exchange) panicked(cause any) *refusal {
	x.handler.options.Log.Error(fmt.Errorf("panic: %v", cause), "Converter panicked",
		"uid", string(x.review.uid), "desiredAPIVersion", string(x.review.desired), "stack", string(debug.Stack()))
	if x.target == nil {
		return &refusal{http.StatusInternalServerError, failurePanic, errPanic.Error()}
	}
	x.failObject("", failurePanic, errPanic)
	x.answerFailure()
	return nil
}
