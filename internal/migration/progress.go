// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"math"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
)

const (
	// logInterval is the time between two progress lines in the log. The first one comes with the first rate. Each
	// tenth of the objects is also logged, if there are at least logTenths.
	logInterval = 10 * time.Second
	logTenths   = 100
	// rateWindow is the time over which the rate is measured.
	rateWindow = 10 * time.Second
)

// progress measures how fast this pod is.
type progress struct {
	clock Clock
	// began and base are the start of the measurement, one to two windows ago. next and nextBase
	// are the start of the next one.
	began, next    time.Time
	base, nextBase int64
	logged         time.Time
	loggedTenth    int64
	// loggedRate reports whether a rate has been logged.
	loggedRate bool
}

func newProgress(clock Clock, done int64) *progress {
	now := clock.Now()
	return &progress{clock: clock, began: now, next: now, base: done, nextBase: done, logged: now}
}

// rate returns the objects per second, or 0 if unknown.
func (p *progress) rate(done int64) float64 {
	now := p.clock.Now()
	if now.Sub(p.next) >= rateWindow {
		p.began, p.base = p.next, p.nextBase
		p.next, p.nextBase = now, done
	}
	seconds := now.Sub(p.began).Seconds()
	if seconds < 1 || done <= p.base {
		return 0
	}
	return math.Round(float64(done-p.base)/seconds*10) / 10
}

// forecast returns the rate, and when all objects are done at that rate. It returns zero values
// unless objects are being rewritten.
func (p *progress) forecast(r contract.Record) (float64, *metav1.Time) {
	if r.State != contract.StateRunning {
		return 0, nil
	}
	rate := p.rate(r.Done())
	if rate == 0 {
		return 0, nil
	}
	rest := time.Duration(float64(r.Total-r.Done()) / rate * float64(time.Second))
	end := metav1.NewTime(p.clock.Now().Add(rest)).Rfc3339Copy()
	return rate, &end
}

// log writes a progress line if one is due.
func (p *progress) log(ctx context.Context, c contract.Counters) {
	now := p.clock.Now()
	tenth, rate := 10*c.Done()/max(c.Total, 1), p.rate(c.Done())
	isFirst := rate > 0 && !p.loggedRate
	if !isFirst && now.Sub(p.logged) < logInterval && (c.Total < logTenths || tenth == p.loggedTenth) {
		return
	}
	p.logged, p.loggedTenth, p.loggedRate = now, tenth, p.loggedRate || isFirst
	logr.FromContextOrDiscard(ctx).Info("Migrating", "done", c.Done(), "total", c.Total,
		"rewritten", c.Rewritten, "current", c.Current, "gone", c.Gone, "failed", c.Failed, "perSecond", rate)
}
