//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// load has clients that write at the old version and read at both.
type load struct {
	crontab scenarios.CronTab
	// succeeded and failed are the conversions before the load.
	succeeded, failed int

	stop    context.CancelFunc
	clients sync.WaitGroup
	trips   atomic.Int64
	failure atomic.Pointer[error]
}

const (
	// loadClients is the number of clients. Each has its own object, and so knows what to read.
	loadClients = 2
	// loadPause is the time between two round trips of a client.
	loadPause = 50 * time.Millisecond
)

func startLoad(ctx context.Context, t *testing.T, crontab scenarios.CronTab) *load {
	t.Helper()
	l := &load{crontab: crontab}
	l.succeeded, l.failed = countConversions(ctx, t, crontab)
	ctx, l.stop = context.WithCancel(ctx)
	for i := range loadClients {
		l.clients.Go(func() {
			if err := l.run(ctx, crontab.Object(i)); err != nil && ctx.Err() == nil {
				l.failure.CompareAndSwap(nil, &err)
			}
		})
	}
	return l
}

// run writes a number into an object at the old version, and reads it at the new one, repeatedly
// until the context ends.
func (l *load) run(ctx context.Context, object *unstructuredObject) error {
	ticker := time.NewTicker(loadPause)
	defer ticker.Stop()
	for n := int64(1); ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		at := time.Now().Format(time.RFC3339Nano)
		patch := fmt.Appendf(nil, `{"replicas":%d}`, n)
		if err := cluster.Patch(ctx, object.DeepCopy(), client.RawPatch(types.MergePatchType, patch)); err != nil {
			return fmt.Errorf("write %d at %s: %w", n, at, err)
		}
		read, err := fleet.Get(ctx, l.crontab.At(l.crontab.New), object.GetName())
		if err == nil {
			err = atNew(read, object)
		}
		if err == nil && read.Object["replicas"] != n {
			err = fmt.Errorf("replicas is %v, and was written as %d", read.Object["replicas"], n)
		}
		if err != nil {
			return fmt.Errorf("read %d at %s: %w", n, at, err)
		}
		l.trips.Add(1)
	}
}

// check stops the load, and fails the test if a request failed.
func (l *load) check(t *testing.T) {
	t.Helper()
	l.stop()
	l.clients.Wait()
	if failure := l.failure.Load(); failure != nil {
		t.Errorf("after %d writes and reads: %v", l.trips.Load(), *failure)
	}
	t.Logf("%d objects were written and read", l.trips.Load())
}

// checkAll is check, and also fails if the API server counts a failed conversion for any client,
// including its own caches.
func (l *load) checkAll(t *testing.T) {
	t.Helper()
	l.check(t)
	succeeded, failed := countConversions(t.Context(), t, l.crontab)
	if t.Logf("%d conversions succeeded", succeeded-l.succeeded); succeeded == l.succeeded || failed != l.failed {
		t.Errorf("the API server counts %d conversions that succeeded and %d that failed, want some and none", succeeded-l.succeeded, failed-l.failed)
	}
}

// conversionsMetric counts the calls of a CustomResourceDefinition's webhook.
var conversionsMetric = regexp.MustCompile(`(?m)^apiserver_crd_conversion_webhook_duration_seconds_count\{crd_name="([^"]+)",[^}]*succeeded="([^"]+)"[^}]*\} (\d+)`)

// countConversions returns how many conversions succeeded and failed, for any client, by the
// metrics of the API server.
func countConversions(ctx context.Context, t *testing.T, crontab scenarios.CronTab) (succeeded, failed int) {
	t.Helper()
	text, err := teller.Run(ctx, "kubectl", "get", "--raw", "/metrics")
	expect.NoError(t, err)
	for _, found := range conversionsMetric.FindAllStringSubmatch(text, -1) {
		count, err := strconv.Atoi(found[3])
		expect.NoError(t, err)
		switch {
		case found[1] != crontab.CRD():
		case found[2] == "true":
			succeeded += count
		default:
			failed += count
		}
	}
	return succeeded, failed
}

// outage has clients that read objects at both versions, and go on after failures.
type outage struct {
	stop    context.CancelFunc
	clients sync.WaitGroup

	mu    sync.Mutex
	reads []read
}

// read is the result of one request.
type read struct {
	began, ended time.Time
	err          error
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
	for ctx.Err() == nil {
		began := time.Now()
		err := readBoth(ctx, crontab, crontab.Object(0))
		if ctx.Err() != nil {
			return
		}
		o.mu.Lock()
		o.reads = append(o.reads, read{began, time.Now(), err})
		o.mu.Unlock()
		select {
		case <-ctx.Done():
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
		case errors.Is(read.err, errWrong):
			t.Error(read.err)
		case read.err == nil && read.ended.Before(removed):
			right++
		case read.err != nil && read.began.Before(removed):
			failed++
		case read.err != nil:
			late++
		}
	}
	t.Logf("until the endpoints were removed, %d reads succeeded and %d failed; of those that began later, %d failed", right, failed, late)
	if right == 0 || failed == 0 {
		t.Error("want some that succeeded, and some that failed")
	}
}
