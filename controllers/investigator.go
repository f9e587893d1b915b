// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/conversion-operator/conversion-operator/internal/plan"
	"github.com/conversion-operator/conversion-operator/internal/verify/live"
)

// Investigator finds out, in the background, what takes its time: whether live
// objects come back as they were (samples.go), whether an API server reaches the
// converter (ask_apiserver.go), what was written while nothing was converted
// (writes.go), and who still asks for which version (deprecated_requests.go). It also
// lets objects forget a version (managed_fields.go).
type Investigator struct {
	// TakeSamples, AskAPIServer, CountWrites, ReadRequests and ClearManagedFields do the work.
	TakeSamples  func(context.Context, plan.TakeSamples) plan.Inquiry
	AskAPIServer func(context.Context, plan.AskAPIServer) plan.Inquiry
	CountWrites  func(context.Context, plan.CountWrites) plan.Inquiry
	ReadRequests func(context.Context, plan.ReadRequests) plan.Inquiry
	// ClearManagedFields changes objects, as the user that may.
	ClearManagedFields func(context.Context, plan.ClearManagedFields) plan.Inquiry
	// Tidy ends what a manager left behind that died while it asked; may be nil.
	Tidy func(context.Context) error
	// Now is the clock.
	Now func() time.Time

	samples, apiServer, writes, requests, clearing, resamples *inquiries
	// lasting is the context of all work: it ends with the manager.
	lasting context.Context
	done    chan event.GenericEvent
}

// NewInvestigator returns an Investigator that reads objects as the user that may,
// and lets the client's API server call converters.
func NewInvestigator(config *rest.Config, writer client.Writer, direct client.Reader, now func() time.Time) *Investigator {
	read := &reader{config: config, slots: make(chan struct{}, readsAtOnce)}
	ask := &asker{client: writer, live: direct, turn: make(chan struct{}, 1)}
	look := &meter{config: config, now: now}
	return &Investigator{
		TakeSamples: read.takeSamples, AskAPIServer: ask.ask, CountWrites: read.countWrites,
		ReadRequests: look.requests, ClearManagedFields: read.clearManagedFields, Tidy: ask.rest, Now: now,
	}
}

// start prepares for inquiries that last as long as ctx.
func (i *Investigator) start(ctx context.Context) {
	i.lasting, i.done = ctx, make(chan event.GenericEvent)
	for _, kind := range []**inquiries{&i.samples, &i.apiServer, &i.writes, &i.requests, &i.clearing, &i.resamples} {
		*kind = newInquiries(i.Now, i.done)
	}
}

// observe fills in what is known about a policy.
func (i *Investigator) observe(observed *plan.Observed) {
	policy := observed.Policy.Name
	observed.Samples, observed.APIServer, observed.Written = i.samples.of(policy), i.apiServer.of(policy), i.writes.of(policy)
	observed.Requested, observed.Cleared = i.requests.of(policy), i.clearing.of(policy)
	observed.Resampled, observed.ResamplersBusy = i.resamples.of(policy), i.resamples.underWay() >= resamplersAtOnce
}

// do starts an inquiry, and does not wait for it.
func (i *Investigator) do(policy string, step plan.Step) {
	lasting := ctrl.LoggerInto(i.lasting, ctrl.LoggerFrom(i.lasting).WithValues("policy", policy))
	switch step := step.(type) {
	case plan.TakeSamples:
		asked := i.samples
		if step.Again {
			asked = i.resamples
		}
		asked.ask(lasting, policy, step.Subject, func(ctx context.Context) plan.Inquiry { return i.TakeSamples(ctx, step) })
	case plan.AskAPIServer:
		i.apiServer.ask(lasting, policy, step.Subject, func(ctx context.Context) plan.Inquiry { return i.AskAPIServer(ctx, step) })
	case plan.CountWrites:
		i.writes.ask(lasting, policy, step.Subject, func(ctx context.Context) plan.Inquiry { return i.CountWrites(ctx, step) })
	case plan.ReadRequests:
		i.requests.ask(lasting, policy, step.Subject, func(ctx context.Context) plan.Inquiry { return i.ReadRequests(ctx, step) })
	case plan.ClearManagedFields:
		i.clearing.ask(lasting, policy, step.Subject, func(ctx context.Context) plan.Inquiry { return i.ClearManagedFields(ctx, step) })
	}
}

// forget what was asked about a policy that is gone.
func (i *Investigator) forget(policy string) {
	for _, asked := range []*inquiries{i.samples, i.apiServer, i.writes, i.requests, i.clearing, i.resamples} {
		asked.forget(policy)
	}
}

// readsAtOnce bounds the policies whose objects are read at the same time. Most of
// that is to wait until API servers know of the right to.
const readsAtOnce = 8

// resamplersAtOnce bounds the policies whose live objects are sampled again at the same
// time: that is not urgent.
const resamplersAtOnce = 2

// reader reads objects.
type reader struct {
	config *rest.Config
	slots  chan struct{}
}

// connect acts as the user that may read the objects of one kind. Nobody else may,
// the manager included.
func (r *reader) connect(user string) (*live.Cluster, error) {
	config := rest.CopyConfig(r.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	return live.Connect(config)
}

// enter waits for a slot, and reports whether there was one before ctx ended.
func enter(ctx context.Context, slots chan struct{}) bool {
	select {
	case slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}
