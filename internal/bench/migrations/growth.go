// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migrations

import (
	"context"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/bench/measure"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
)

// GrowthSuite is the name of the suite of RunGrowth.
const GrowthSuite = "growth"

// parts is the number of measurements during the migration.
const parts = 10

// RunGrowth is Run for a single migration of many objects. It reports rate and memory over time:
// neither should depend on the number of objects before.
func RunGrowth(ctx context.Context, progress io.Writer, options Options) ([]measure.Row, error) {
	r, err := install(ctx, GrowthSuite, progress, options)
	if err != nil {
		return nil, err
	}
	s := setups[0]
	r.tell("creating %d objects", r.Objects)
	if err := r.prepare(ctx, s, r.Objects); err != nil {
		return nil, err
	}
	if _, err := r.store(ctx, s, newVersion); err != nil {
		return nil, err
	}
	g := &growth{suite: r, setup: s, began: time.Now()}
	if _, err := r.migrate(ctx, r.Binary, s, v1alpha1.MigrationFast, g.look); err != nil {
		return nil, err
	}
	return r.rows, r.storedAt(ctx, s, newVersion, r.Objects)
}

// growth is the state of the measurement.
type growth struct {
	*suite
	setup setup
	began time.Time
	// before is the number of objects at the end of the last part, after the time until then.
	before int64
	after  time.Duration
}

// look reports a part of the objects once they are done, according to the checkpoint of the run,
// which is saved now and then.
func (g *growth) look(ctx context.Context, run string, memory measure.Memory) {
	checkpoint := &corev1.ConfigMap{}
	if err := g.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: run}, checkpoint); err != nil {
		return // the next look sees it
	}
	record, err := contract.ParseRecord([]byte(checkpoint.Data[contract.RecordKey]))
	if err != nil || record.Done()*parts/int64(g.Objects) == g.before*parts/int64(g.Objects) {
		return
	}
	done, passed := record.Done(), time.Since(g.began)
	rate := float64(done-g.before) / (passed - g.after).Seconds()
	g.before, g.after = done, passed
	g.tell("%d of %d objects, %.0f objects/s", done, g.Objects, rate)
	subject := fmt.Sprintf("after %d objects", done)
	g.add(g.setup, subject, passed.Seconds(), "s")
	g.add(g.setup, subject, rate, "objects/s since the line above")
	g.add(g.setup, subject, memory.Resident, "MiB resident")
	g.add(g.setup, subject, memory.Anonymous, "MiB of it anonymous")
}
