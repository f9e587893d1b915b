//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// loadClients is the number of clients of a load. Each has its own object, and so knows what to read.
const loadClients = 2

// load has clients that write at the old version and read at the new one.
type load struct {
	crontab scenarios.CronTab
	// succeeded and failed are the conversions before the load.
	succeeded, failed int
	clients           []*scenarios.Client
}

func startLoad(ctx context.Context, t *testing.T, crontab scenarios.CronTab) *load {
	t.Helper()
	l := &load{crontab: crontab}
	l.succeeded, l.failed = countConversions(ctx, t, crontab)
	for i := range loadClients {
		var n int64
		l.clients = append(l.clients, scenarios.Repeat(ctx, func(ctx context.Context) error {
			n++
			return roundTrip(ctx, crontab, crontab.Object(i), n)
		}))
	}
	return l
}

// roundTrip writes a number into an object at the old version, and reads it at the new one.
func roundTrip(ctx context.Context, crontab scenarios.CronTab, object *unstructuredObject, n int64) error {
	patch := fmt.Appendf(nil, `{"replicas":%d}`, n)
	if err := cluster.Patch(ctx, object.DeepCopy(), client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("write %d: %w", n, err)
	}
	read, err := fleet.Get(ctx, crontab.At(crontab.New), object.GetName())
	if err == nil {
		err = atNew(read, object)
	}
	if err == nil && read.Object["replicas"] != n {
		err = fmt.Errorf("replicas is %v, and was written as %d", read.Object["replicas"], n)
	}
	return err
}

// check stops the load, and fails the test if a request failed.
func (l *load) check(t *testing.T) {
	t.Helper()
	for _, each := range l.clients {
		expect.NoError(t, each.Check())
	}
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
