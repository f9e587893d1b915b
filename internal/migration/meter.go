// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"math"
	"time"

	"github.com/go-logr/logr"
)

// logInterval is the time between two lines of progress in the log.
const logInterval = 5 * time.Second

// meter logs the progress and the rate of this pod.
type meter struct {
	clock   Clock
	started time.Time
	logged  time.Time
	// before is what earlier pods have done.
	before int64
}

func newMeter(clock Clock, before int64) *meter {
	now := clock.Now()
	return &meter{clock: clock, started: now, logged: now, before: before}
}

func (m *meter) tick(ctx context.Context, c Counters) {
	now := m.clock.Now()
	if now.Sub(m.logged) < logInterval {
		return
	}
	m.logged = now
	rate := float64(c.Done()-m.before) / now.Sub(m.started).Seconds()
	logr.FromContextOrDiscard(ctx).Info("Migrating", "done", c.Done(), "total", c.Total,
		"rewritten", c.Rewritten, "current", c.Current, "gone", c.Gone, "failed", c.Failed, "perSecond", math.Round(rate))
}
