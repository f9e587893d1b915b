// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan"
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
	Settings plan.Settings
	// Prover asks converter pods for proof.
	Prover *Prover
	// Investigator finds out what takes its time.
	Investigator *Investigator
	// Authorizer tells what may be done; nil where the operator grants every right itself.
	Authorizer Authorizer
	// Now is the clock.
	Now func() time.Time
	// Tracer of reconciliations and their steps.
	Tracer tracing.Tracer

	orphans orphans
	rules   compiledRules
}

// Reconcile brings one policy a step further:
//
//  1. observe everything that a decision depends on
//  2. plan: decide the steps and the status
//  3. apply the steps in order
//  4. report the status, and events of what changed in it
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
		r.Investigator.forget(request.Name)
		r.rules.forget(request.Name)
		r.Prover.keep(request.Name, nil)
		return r.tendOrphan(ctx, request.Name)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	r.orphans.put(policy.Name, orphan{})
	observed, err := r.observe(ctx, policy)
	if err != nil {
		return ctrl.Result{}, err
	}
	decided := decide(ctx, observed)
	applyErr := r.apply(ctx, policy, decided.Steps)
	reportErr := r.report(ctx, policy, decided, applyErr)

	return afterWrites(decided, applyErr, reportErr)
}

// afterWrites is what follows from writes that ended so. Where somebody else wrote in
// between, it is looked at again and decided anew.
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
