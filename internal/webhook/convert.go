// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"
)

// headroomDivisor sets the initial capacity of an answer: the size of the body, plus that size
// divided by headroomDivisor.
const headroomDivisor = 8

// callTimeout is when an API server has abandoned a call, which its connection does not always
// show: k8s.io/apiserver/pkg/util/webhook waits that long.
const callTimeout = 30 * time.Second

// errPanic replaces the value of a panic of the converter in answers. The value itself is only
// logged, because it may contain live data.
var errPanic = errors.New("internal error of the converter, its cause is in the log of the converter pod")

// errStopped ends the parsing of a review in which an object failed.
var errStopped = errors.New("stopped")

// exchange is the state of one call, and its buffers.
type exchange struct {
	handler *Handler
	// served are the rulesets at the start of the call.
	served *served
	// ruleset is the one in the path, or nil if the pod does not have it; kind is its kind, and
	// converter its converter.
	ruleset   *servedRuleset
	kind      *kind
	converter Converter
	// working reports whether the call holds a processor.
	working bool
	// work is the memory that it holds to convert, of which spare is for the least that a conversion takes.
	work, spare int64
	// refused is set if it needs more, and may get it later; tooMuch if there is not that much.
	refused *refusal
	tooMuch bool
	// probe reports whether the call is a probe of the operator, not one in production.
	probe bool
	// connection is nil if it is unknown.
	connection *connection
	// ctx is the context of the call, and began its start by clock.
	ctx   context.Context
	began time.Duration
	// stop is the method mustStop, as a value that is allocated once.
	stop func(memory int64) bool
	// in is the body of the request, and out the answer.
	in, out []byte
	// claim is the memory for the buffers.
	claim  claim
	review review
	// headWritten reports whether out has the head of the answer, so that objects can be appended.
	headWritten bool
	// target is the version to convert to, with its metrics.
	target *target
	// converted is the number of converted objects, and convertDuration the time that they took
	// together.
	converted       int
	convertDuration time.Duration
	// object starts with the object that is being converted. Other data follows it.
	object []byte
	// failure and cause are set if the review is answered with a failure.
	failure failure
	cause   error
}

var exchanges = sync.Pool{New: func() any {
	x := new(exchange)
	x.stop = x.mustStop
	return x
}}

// clock returns the time since the program started. It takes half the time of time.Now, which also
// reads the time of day.
func clock() time.Duration { return time.Since(programBegan) }

var programBegan = time.Now()

func (h *Handler) newExchange(ctx context.Context) *exchange {
	x := exchanges.Get().(*exchange)
	x.handler, x.served, x.began = h, h.served.Load(), clock()
	x.kind = x.served.other
	if x.connection = connectionOf(ctx); x.connection != nil {
		x.claim.holders = append(x.claim.holders, &x.connection.from.bodies)
	}
	return x
}

// abandoned reports whether the caller no longer waits for the answer.
func (x *exchange) abandoned() bool { return x.ctx.Err() != nil || clock()-x.began > callTimeout }

func (x *exchange) release() {
	// A converter that panicked may still use the buffers.
	reuse := x.failure != failurePanic
	if reuse {
		// Before the memory is released, so that the next call finds them.
		x.in, x.out = kept(x.in), kept(x.out)
	}
	x.handler.limiters.bodies.release(&x.claim)
	x.kind.inFlight.Add(-1)
	if reuse {
		*x = exchange{in: x.in, out: x.out, claim: x.claim, stop: x.stop}
		exchanges.Put(x)
	}
}

// convert answers a ConversionReview, with all objects or with a failure. Only a request that is
// not a review gets an HTTP error.
func (h *Handler) convert(w http.ResponseWriter, r *http.Request, hash string) {
	x := h.newExchange(r.Context())
	defer x.release()

	refused := x.selectRuleset(hash, r.UserAgent())
	if refused == nil {
		refused = x.readBody(r)
	}
	if refused == nil && x.claim.held > 0 {
		refused = x.name(objectOf(x.in))
	}
	if refused == nil {
		refused = x.respond(r.Context())
	}
	if refused == nil {
		x.write(r.Context(), w)
	} else {
		x.failure = refused.failure
		refuse(w, refused)
	}
	x.kind.metrics.request(x)
}

// selectRuleset selects the ruleset in the path. A pod that is about to end or to be replaced may
// lack a ruleset that other pods have, so the API server is told to retry.
func (x *exchange) selectRuleset(hash, agent string) *refusal {
	x.probe, x.ruleset = strings.HasPrefix(agent, ProbeAgent), x.served.rulesets[hash]
	if x.ruleset != nil {
		x.kind, x.converter = x.ruleset.kind, x.ruleset.Converter
	}
	x.claim.holders = append(x.claim.holders, &x.kind.held.bodies)
	x.kind.inFlight.Add(1)
	if x.ruleset == nil {
		return &refusal{http.StatusServiceUnavailable, failureUnknownRuleset, fmt.Sprintf(
			"this converter pod does not have the rules %q: see the conditions of the ConversionPolicy of this kind", hash)}
	}
	if !x.probe {
		x.ruleset.requested.Store(int64(x.began))
	}
	return nil
}

// respond parses the review in x.in and writes the answer to x.out. It also answers after a panic,
// so that the answer has the uid: without it, the API server would report a mismatch of uids
// instead of the failure.
func (x *exchange) respond(ctx context.Context) (refused *refusal) {
	if refused := x.reserve(cap(x.in), x.answerBytes()); refused != nil {
		return refused
	}
	defer x.endWork()
	if refused := x.beginWork(ctx); refused != nil {
		return refused
	}
	defer func() {
		if cause := recover(); cause != nil {
			refused = x.panicked(cause)
		}
	}()
	x.ctx = ctx
	err := x.read()
	if x.refused == nil {
		x.refused = x.reserve(cap(x.in), cap(x.out))
	}
	switch {
	case x.refused != nil:
		return x.refused
	case x.cause != nil:
		x.answerFailure()
	case err != nil:
		return &refusal{http.StatusBadRequest, failureInvalidReview, fmt.Sprintf("not a usable ConversionReview: %s", err)}
	default:
		x.out = appendSuccess(x.out)
	}
	return nil
}

// beginAnswer appends the head of the answer, and reports whether objects can follow.
func (x *exchange) beginAnswer() bool {
	x.headWritten = true
	x.out = appendHead(withRoom(x.out[:0], x.answerBytes()), &x.review)
	x.target = x.ruleset.targets[string(x.review.desired)]
	if x.target != nil {
		return true
	}
	if x.review.isProbe() {
		x.answerProbe()
		return true
	}
	version, err := x.review.target(x.kind.group)
	if err != nil {
		_ = x.fail(failureInvalidReview, err)
		return false
	}
	// The converter reports versions that it does not know.
	x.target = x.kind.metrics.unknownTarget(version)
	return true
}

// answerBytes is the initial size of the buffer for the answer.
func (x *exchange) answerBytes() int { return len(x.in) + len(x.in)/headroomDivisor }

// name makes the call that of an object, and refuses it if calls of that object hold too much.
func (x *exchange) name(namespace, object string) *refusal {
	if x.handler.limiters.bodies.name(&x.claim, x.kind.held.objects, namespace, object) {
		return nil
	}
	return busy()
}

// fail records why the review fails, and returns the error that stops the parsing.
func (x *exchange) fail(failure failure, cause error) error {
	x.failure, x.cause = failure, cause
	return errStopped
}

func (x *exchange) answerFailure() {
	level := 1
	x.kind.examples.Do(func() { level = 0 })
	x.log().V(level).Info("Conversion failed", "uid", string(x.review.uid), "desiredAPIVersion", string(x.review.desired),
		"converted", x.converted, "error", x.cause.Error())
	x.out = appendFailure(appendHead(x.out[:0], &x.review), x.cause.Error())
}

// panicked turns a panic into a failure, or into a refusal if the review has no uid yet.
func (x *exchange) panicked(cause any) *refusal {
	x.log().Error(fmt.Errorf("panic: %v", cause), "Converter panicked",
		"uid", string(x.review.uid), "desiredAPIVersion", string(x.review.desired), "stack", string(debug.Stack()))
	if x.target == nil {
		return &refusal{http.StatusInternalServerError, failurePanic, errPanic.Error()}
	}
	_ = x.failObject("", failurePanic, errPanic)
	x.answerFailure()
	return nil
}
