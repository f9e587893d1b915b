//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
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

// load has clients that write at the old version and read at the new one.
type load struct {
	stop    context.CancelFunc
	clients sync.WaitGroup
	trips   atomic.Int64
	failed  atomic.Pointer[error]
}

const (
	// loadClients is the number of clients. Each has its own object, and so knows what to read.
	loadClients = 2
	// loadPause is the time between two round trips of a client.
	loadPause = 50 * time.Millisecond
)

func startLoad(ctx context.Context, crontab scenarios.CronTab) *load {
	ctx, stop := context.WithCancel(ctx)
	l := &load{stop: stop}
	for i := range loadClients {
		l.clients.Go(func() {
			if err := l.trip(ctx, crontab, crontab.Object(i)); err != nil && ctx.Err() == nil {
				l.failed.CompareAndSwap(nil, &err)
			}
		})
	}
	return l
}

// trip writes a number into an object at the old version, and reads it at the new one, repeatedly
// until the context ends.
func (l *load) trip(ctx context.Context, crontab scenarios.CronTab, object *unstructuredObject) error {
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
		read, err := fleet.Get(ctx, crontab.At(crontab.New), object.GetName())
		if err == nil {
			err = checkRead(read, object)
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
	if failed := l.failed.Load(); failed != nil {
		t.Errorf("after %d writes and reads: %v", l.trips.Load(), *failed)
	}
	t.Logf("%d objects were written and read", l.trips.Load())
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

// allConvert returns a function that checks that all conversions since the call succeeded,
// including those for the API server's caches.
func allConvert(ctx context.Context, t *testing.T, crontab scenarios.CronTab) (check func()) {
	t.Helper()
	succeeded, failed := countConversions(ctx, t, crontab)
	return func() {
		t.Helper()
		since, failures := countConversions(ctx, t, crontab)
		if t.Logf("%d conversions succeeded", since-succeeded); since == succeeded || failures != failed {
			t.Errorf("the API server counts %d conversions that succeeded and %d that failed, want some and none", since-succeeded, failures-failed)
		}
	}
}

// podNames are pods whose requests the check of rights ignores.
type podNames struct {
	mu   sync.Mutex
	seen map[string]bool
}

// leftOut are managers whose rights were deleted before they ended.
var leftOut = podNames{seen: map[string]bool{}}

func (p *podNames) add(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen[name] = true
}

func (p *podNames) names() map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen
}
