//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// outage has clients that read objects which are converted, and go on after failures.
type outage struct {
	stop    context.CancelFunc
	clients sync.WaitGroup

	mu    sync.Mutex
	reads []read
}

// read is the result of one request.
type read struct {
	began, ended time.Time
	failed       error
	wrong        error
}

// outageClients is the number of clients that read each CronTab.
const outageClients = 4

func startOutage(ctx context.Context, crontabs []scenarios.CronTab) *outage {
	ctx, stop := context.WithCancel(ctx)
	o := &outage{stop: stop}
	for _, crontab := range crontabs {
		for range outageClients {
			o.clients.Go(func() { o.run(ctx, crontab) })
		}
	}
	return o
}

func (o *outage) run(ctx context.Context, crontab scenarios.CronTab) {
	want := crontab.Object(0)
	for {
		next := read{began: time.Now()}
		object, err := fleet.Get(ctx, crontab.At(crontab.New), want.GetName())
		if ctx.Err() != nil {
			return
		}
		if next.ended, next.failed = time.Now(), err; err == nil {
			next.wrong = checkRead(object, want)
		}
		o.mu.Lock()
		o.reads = append(o.reads, next)
		o.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-time.After(loadPause):
		}
	}
}

// check stops the clients. No read may have been wrong. Some have succeeded, and some have failed,
// before the Service had lost its endpoints: otherwise there was no outage.
func (o *outage) check(t *testing.T, removed time.Time) {
	t.Helper()
	o.stop()
	o.clients.Wait()
	var right, failed, late int
	for _, read := range o.reads {
		switch {
		case read.wrong != nil:
			t.Error(read.wrong)
		case read.failed == nil && read.ended.Before(removed):
			right++
		case read.failed != nil && read.began.Before(removed):
			failed++
		case read.failed != nil:
			late++
			t.Logf("%s after that: %v", read.began.Sub(removed), read.failed)
		}
	}
	t.Logf("until the endpoints were removed, %d reads succeeded and %d failed; of those that began later, %d failed", right, failed, late)
	if right == 0 || failed == 0 {
		t.Error("want some that succeeded, and some that failed")
	}
}
