// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/verify/live"
)

// BackgroundChecks are what takes too long for a reconciliation: whether live
// objects come back as they were (samples.go), whether an API server reaches the
// converter (probe_apiserver.go), what was written while nothing was converted
// (writes.go), who still requests which version (request_metrics.go). They also remove
// a version from managedFields of objects (managed_fields.go).
type BackgroundChecks struct {
	// TakeSamples, ProbeAPIServer, CountWrites, ReadRequests and ClearManagedFields do the work.
	TakeSamples    func(context.Context, step.TakeSamples) observed.BackgroundCheck
	ProbeAPIServer func(context.Context, step.ProbeAPIServer) observed.BackgroundCheck
	CountWrites    func(context.Context, step.CountWrites) observed.BackgroundCheck
	ReadRequests   func(context.Context, step.ReadRequests) observed.BackgroundCheck
	// ClearManagedFields changes objects, as the user that may.
	ClearManagedFields func(context.Context, step.ClearManagedFields) observed.BackgroundCheck
	// Tidy restores what a manager left behind that died during an API server probe; may be nil.
	Tidy func(context.Context) error
	// Now is the clock.
	Now func() time.Time

	background                                                 *background
	samples, apiServer, writes, requests, cleanings, resamples *checks
}

// NewBackgroundChecks returns checks that read objects as the user that may, and let
// the client's API server call converters.
func NewBackgroundChecks(config *rest.Config, writer client.Writer, direct client.Reader, now func() time.Time) *BackgroundChecks {
	read := newReader(config)
	prober := &apiServerProber{client: writer, live: direct, turn: make(slots, 1)}
	metrics := &requestMetricsReader{config: config, now: now}
	return &BackgroundChecks{
		TakeSamples: read.takeSamples, ProbeAPIServer: prober.probe, CountWrites: read.countWrites,
		ReadRequests: metrics.requests, ClearManagedFields: read.cleanManagedFields, Tidy: prober.tidy, Now: now,
	}
}

// start prepares for checks in the background.
func (c *BackgroundChecks) start(b *background) {
	c.background = b
	for _, kind := range []**checks{&c.samples, &c.apiServer, &c.writes, &c.requests, &c.cleanings, &c.resamples} {
		*kind = newChecks(b, c.Now)
	}
}

// observe fills in what is known about a policy.
func (c *BackgroundChecks) observe(state *observed.Cluster) {
	policy := state.Policy.Name
	state.Samples, state.APIServer, state.Written = c.samples.of(policy), c.apiServer.of(policy), c.writes.of(policy)
	state.Requested, state.Cleared = c.requests.of(policy), c.cleanings.of(policy)
	state.Resampled, state.ResamplersBusy = c.resamples.of(policy), c.resamples.running() >= resamplesAtOnce
}

// do starts a check, and does not wait for it.
func (c *BackgroundChecks) do(policy string, s step.Step) {
	switch s := s.(type) {
	case step.TakeSamples:
		samples := c.samples
		if s.Again {
			samples = c.resamples
		}
		samples.start(policy, s.Subject, func(ctx context.Context) observed.BackgroundCheck { return c.TakeSamples(ctx, s) })
	case step.ProbeAPIServer:
		c.apiServer.start(policy, s.Subject, func(ctx context.Context) observed.BackgroundCheck { return c.ProbeAPIServer(ctx, s) })
	case step.CountWrites:
		c.writes.start(policy, s.Subject, func(ctx context.Context) observed.BackgroundCheck { return c.CountWrites(ctx, s) })
	case step.ReadRequests:
		c.requests.start(policy, s.Subject, func(ctx context.Context) observed.BackgroundCheck { return c.ReadRequests(ctx, s) })
	case step.ClearManagedFields:
		c.cleanings.start(policy, s.Subject, func(ctx context.Context) observed.BackgroundCheck { return c.ClearManagedFields(ctx, s) })
	}
}

// forget the checks of a policy that is gone.
func (c *BackgroundChecks) forget(policy string) {
	for _, kind := range []*checks{c.samples, c.apiServer, c.writes, c.requests, c.cleanings, c.resamples} {
		kind.forget(policy)
	}
}

// How many policies may have a check of each kind at the same time. A kind has slots of
// its own, because some checks end in seconds and others take hours: a new policy waits
// for samples before it is activated, and must not wait until the objects of others
// are all counted or cleaned.
const (
	// samplesAtOnce: most of that is to wait until API servers know of the right to read.
	samplesAtOnce = 8
	// resamplesAtOnce: that is not urgent.
	resamplesAtOnce = 2
	// countsAtOnce: each reads the metadata of all objects of a kind.
	countsAtOnce = 4
	// cleaningsAtOnce: each writes all objects of a kind that name a version.
	cleaningsAtOnce = 2
)

// slots bound what goes on at the same time.
type slots chan struct{}

// enter waits for a slot, and reports whether there was one before ctx ended.
func (s slots) enter(ctx context.Context) bool {
	select {
	case s <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s slots) leave() { <-s }

// reader reads objects.
type reader struct {
	config                                *rest.Config
	samples, resamples, counts, cleanings slots
}

func newReader(config *rest.Config) *reader {
	return &reader{config: config, samples: make(slots, samplesAtOnce), resamples: make(slots, resamplesAtOnce),
		counts: make(slots, countsAtOnce), cleanings: make(slots, cleaningsAtOnce)}
}

// connect acts as the user that may read the objects of one kind. No other client may,
// the manager included.
func (r *reader) connect(user string) (*live.Cluster, error) {
	config := rest.CopyConfig(r.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	return live.Connect(config)
}
