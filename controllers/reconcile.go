// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/tracing"
)

// ConversionPolicyReconciler reconciles ConversionPolicies.
type ConversionPolicyReconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Live reads from the API server what must not be stale, or is too large to cache.
	Live client.Reader
	// Recorder of events.
	Recorder events.EventRecorder
	// Settings that are the same for every policy.
	Settings observed.Settings
	// Prober probes converter pods.
	Prober *Prober
	// Checks do in the background what takes too long for a reconciliation.
	Checks *BackgroundChecks
	// Authorizer tells what may be done; nil where the operator grants every right itself.
	Authorizer Authorizer
	// Now is the clock.
	Now func() time.Time
	// Tracer of reconciliations and their steps.
	Tracer tracing.Tracer

	background *background
	orphans    orphans
	rules      compiledRules
	rulesets   storedRulesets
	// pods sends requests that controller-runtime's client has no options for.
	pods rest.Interface
}

// Reconcile brings one policy a step further:
//
//  1. observe everything that a decision depends on; where a converter pod is probed for
//     the first time, its answer brings the next reconciliation about
//  2. plan: decide the steps and the status
//  3. apply the steps in order
//  4. report: write the status once, and then events of what changed in it and of what was done
//
// Of a policy that is gone something may be left: that is tended (orphan.go).
func (r *ConversionPolicyReconciler) Reconcile(ctx context.Context, request ctrl.Request) (result ctrl.Result, err error) {
	err = r.Tracer.Trace(ctx, "reconcile", func(ctx context.Context) error {
		result, err = r.reconcile(ctx, request)
		return err
	}, tracing.Policy.String(request.Name))
	return result, err
}

func (r *ConversionPolicyReconciler) reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	policy := &v1alpha1.ConversionPolicy{}
	err := r.Client.Get(ctx, request.NamespacedName, policy)
	if apierrors.IsNotFound(err) {
		r.forget(request.Name)
		return r.tendOrphan(ctx, request.Name)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	r.orphans.put(policy.Name, orphan{})
	state, pending, err := r.observe(ctx, policy)
	if err != nil || pending > 0 {
		return ctrl.Result{RequeueAfter: pending}, err
	}
	before := policy.Status.DeepCopy()
	decided := decide(ctx, state)
	done, applyErr := r.apply(ctx, policy, decided)
	reportErr := r.report(ctx, policy, *before, decided, done, applyErr)
	return afterWrites(decided, applyErr, reportErr)
}

// forget a policy that is gone, and cancel what goes on for it.
func (r *ConversionPolicyReconciler) forget(policy string) {
	r.Checks.forget(policy)
	r.Prober.forget(policy)
	r.background.end(policy)
	r.rules.forget(policy)
	r.rulesets.forget(policy)
}

// afterWrites is what follows from writes that ended so. Where another client wrote in
// between, it is looked at again and decided again.
func afterWrites(decided plan.Plan, errs ...error) (ctrl.Result, error) {
	if slices.ContainsFunc(errs, apierrors.IsConflict) {
		return ctrl.Result{RequeueAfter: conflictPause}, nil
	}
	if err := errors.Join(errs...); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: decided.RecheckAfter}, nil
}

// conflictPause lets the cache see the write that we lost against.
const conflictPause = 200 * time.Millisecond

// decide makes the plan.
func decide(ctx context.Context, state observed.Cluster) (decided plan.Plan) {
	_ = tracing.Span(ctx, "plan", func(ctx context.Context) error { // to decide never fails
		decided = plan.Make(state)
		if ready := apimeta.FindStatusCondition(decided.Status.Conditions, v1alpha1.ReadyCondition); ready != nil {
			tracing.Note(ctx, tracing.Ready.String(ready.Reason), tracing.Steps.Int(len(decided.Steps)))
		}
		return nil
	})
	return decided
}

// noteObserved lets a trace tell which state of the world it is about.
func noteObserved(ctx context.Context, state observed.Cluster) {
	tracing.Note(ctx, tracing.PolicyGeneration.Int64(state.Policy.Generation))
	if crd := state.CRD; crd != nil {
		tracing.Note(ctx, tracing.CRD.String(crd.Name), tracing.CRDGeneration.Int64(crd.Generation))
	}
}

// spanOf names a step in a trace: by its kind, of which there are few.
func spanOf(s step.Step) string { return "apply " + reflect.TypeOf(s).Name() }
