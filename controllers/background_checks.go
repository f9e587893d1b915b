// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify/live"
)

// BackgroundChecks take too long for a reconciliation: whether live objects survive a round trip
// (samples.go), whether an API server reaches the converter (probe_apiserver.go), which objects
// were written during the unconverted window (writes.go), which versions clients request
// (request_metrics.go), and what else names a version (dependents.go). They also remove a version
// from managedFields of objects (managed_fields.go).
type BackgroundChecks struct {
	reader  *reader
	prober  *apiServerProber
	metrics *requestMetricsReader
	now     func() time.Time

	samples, apiServer, writes, requests, searches, cleanings, resamples *checks
}

// NewBackgroundChecks returns checks that read and write objects as the user of each step, and
// that use writer and direct to let API servers call converters.
func NewBackgroundChecks(config *rest.Config, writer client.Writer, direct client.Reader, now func() time.Time) *BackgroundChecks {
	return &BackgroundChecks{
		reader: &reader{config}, prober: &apiServerProber{client: writer, live: direct, slot: make(slots, 1)},
		metrics: newRequestMetricsReader(config, now), now: now,
	}
}

// start initialises the checks.
func (c *BackgroundChecks) start(b *background) {
	for kind, atOnce := range map[**checks]slots{
		&c.samples: make(slots, samplesAtOnce), &c.resamples: make(slots, resamplesAtOnce), &c.apiServer: c.prober.slot,
		&c.writes: make(slots, countsAtOnce), &c.requests: make(slots, 1),
		&c.searches: make(slots, searchesAtOnce), &c.cleanings: make(slots, cleaningsAtOnce),
	} {
		*kind = newChecks(b, atOnce, c.now)
	}
}

// observe adds the latest results of a policy.
func (c *BackgroundChecks) observe(state *observed.Cluster) {
	policy := state.Policy.Name
	state.Samples, state.APIServer, state.Written = c.samples.latest(policy), c.apiServer.latest(policy), c.writes.latest(policy)
	state.Requested, state.Searched, state.Cleared = c.requests.latest(policy), c.searches.latest(policy), c.cleanings.latest(policy)
	state.Resampled, state.ResamplersBusy = c.resamples.latest(policy), c.resamples.running() >= resamplesAtOnce
}

// do starts a check and returns immediately.
func (c *BackgroundChecks) do(policy string, s step.Step) {
	switch s := s.(type) {
	case step.TakeSamples:
		samples := c.samples
		if s.Again {
			samples = c.resamples
		}
		samples.start(policy, s.Subject, func(ctx context.Context) observed.BackgroundCheck { return c.reader.takeSamples(ctx, s) })
	case step.ProbeAPIServer:
		c.apiServer.start(policy, s.Subject, func(ctx context.Context) observed.BackgroundCheck { return c.prober.probe(ctx, s) })
	case step.CountWrites:
		c.writes.start(policy, s.Subject, func(ctx context.Context) observed.BackgroundCheck { return c.reader.countWrites(ctx, s) })
	case step.ReadRequests:
		c.requests.start(policy, s.Subject, func(ctx context.Context) observed.BackgroundCheck { return c.metrics.requests(ctx, s) })
	case step.FindDependents:
		c.searches.restart(policy, s.Subject, func(ctx context.Context) observed.BackgroundCheck { return c.reader.findDependents(ctx, s) })
	case step.ClearManagedFields:
		c.cleanings.restart(policy, s.Subject, func(ctx context.Context) observed.BackgroundCheck { return c.reader.cleanManagedFields(ctx, s) })
	}
}

// forget drops the checks of a deleted policy.
func (c *BackgroundChecks) forget(policy string) {
	for _, kind := range []*checks{c.samples, c.apiServer, c.writes, c.requests, c.searches, c.cleanings, c.resamples} {
		kind.forget(policy)
	}
}

// How many policies may run a check of each kind at the same time. Each kind has its own slots,
// because some checks end in seconds and others take hours: a new policy needs samples before
// its activation, and must not wait until the objects of other policies are counted or cleaned.
const (
	// samplesAtOnce: these mostly wait until API servers know of the right to read.
	samplesAtOnce = 8
	// resamplesAtOnce: these are not urgent.
	resamplesAtOnce = 2
	// countsAtOnce: each reads the metadata of all objects of a kind.
	countsAtOnce = 4
	// cleaningsAtOnce: each writes all objects of a kind that name a version.
	cleaningsAtOnce = 2
	// searchesAtOnce: each reads the metadata of all objects of the cluster.
	searchesAtOnce = 1
)

// slots is a counting semaphore.
type slots chan struct{}

// acquire waits for a slot. It reports false if ctx ended first.
func (s slots) acquire(ctx context.Context) bool {
	select {
	case s <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s slots) release() { <-s }

// reader reads the objects of users.
type reader struct{ config *rest.Config }

// as impersonates the user of a step. The manager itself may not read the objects.
func (r *reader) as(user string) *rest.Config {
	config := rest.CopyConfig(r.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	return config
}

// connect impersonates the user that may read the objects of one kind.
func (r *reader) connect(user string) (*live.Cluster, error) { return live.Connect(r.as(user)) }
