// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
)

// kind is what a Handler has for the kind of one CustomResourceDefinition, so that no kind affects
// another.
type kind struct {
	crd, group, name string
	metrics          *kindMetrics
	failures         *failureLog
	inFlight         atomic.Int64
	held             shares
	logSampler       logSampler
}

func newKind(ruleset Ruleset) *kind {
	return &kind{crd: ruleset.CRD, group: ruleset.Group, name: ruleset.Kind,
		metrics: newKindMetrics(), failures: newFailureLog(ruleset.CRD, time.Now)}
}

// log returns the log for lines about calls of the kind.
func (x *exchange) log() logr.Logger {
	return x.handler.options.Log.WithValues("policy", x.kind.crd, "kind", x.kind.name)
}

// beginWork waits for a processor. A pod with one kind needs no turns.
func (x *exchange) beginWork(ctx context.Context) *refusal {
	if len(x.served.kinds) < 2 {
		return nil
	}
	if _, err := x.handler.limiters.processors.acquire(ctx, &x.kind.held.processors, 1); err != nil {
		return &refusal{http.StatusRequestTimeout, failureCanceled, errAbandoned.Error()}
	}
	x.working = true
	return nil
}

func (x *exchange) endWork() {
	if x.working {
		x.handler.limiters.processors.release(&x.kind.held.processors, 1)
		x.working = false
	}
}

// yield lets other kinds that wait for a processor go first. It returns false if the caller gave up
// meanwhile.
func (x *exchange) yield() bool {
	if !x.working || !x.handler.limiters.processors.wantedByOthers(&x.kind.held.processors) {
		return true
	}
	x.endWork()
	return x.beginWork(x.ctx) == nil
}
