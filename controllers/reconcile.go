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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/operator/tracing"
)

// ConversionPolicyReconciler reconciles ConversionPolicies.
type ConversionPolicyReconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Live reads from the API server what must not be stale, or is too large to cache.
	Live client.Reader
	// Recorder writes events.
	Recorder events.EventRecorder
	// Settings are the same for every policy.
	Settings observed.Settings
	// RequestTimeout determines the propagation delay; nil if Settings do.
	RequestTimeout *RequestTimeout
	// Prober probes converter pods.
	Prober *Prober
	// Checks run in the background, because they take too long for a reconciliation.
	Checks *BackgroundChecks
	// Authorizer reads what the manager and its ServiceAccounts may do; nil if the manager grants
	// every right itself.
	Authorizer Authorizer
	// Now returns the current time.
	Now func() time.Time
	// Tracer records reconciliations and their steps.
	Tracer tracing.Tracer

	background   *background
	orphans      memory[string, orphan]
	rules        compiledRules
	rulesets     storedRulesets
	fleetUsers   fleetUsers
	bundleWrites bundleWrites
	progress     progress
	shardWrites  shardWrites
	loads        loads
	storage      *storageRevision
	// definitions has the latest resourceVersion that was read of the CustomResourceDefinition of each
	// policy.
	definitions memory[string, string]
	// absentKinds has when the API server did not know a kind.
	absentKinds memory[schema.GroupKind, time.Time]
	// nodes are the results of looking for other nodes, by the uid of a pod. Watching all nodes of a
	// large cluster would cost more memory than everything else that the manager watches.
	nodes memory[types.UID, nodeLook]
	// fleetBackground runs work for fleets.
	fleetBackground *background
	// pods sends requests that controller-runtime's client has no options for.
	pods rest.Interface
}

// settings returns the current settings.
func (r *ConversionPolicyReconciler) settings() observed.Settings {
	settings := r.Settings
	if r.RequestTimeout != nil {
		settings.PropagationDelay = r.RequestTimeout.PropagationDelay()
	}
	return settings
}

// Reconcile takes one policy to its next state:
//
//  1. observe everything that a decision depends on
//  2. verify: decide how converter pods must be probed, and add the answers; if a pod is probed for
//     the first time, return and requeue, so that its answer is part of the decision
//  3. plan: decide the steps and the status
//  4. apply the steps in order
//  5. report: write the status once, then events for its changes and for completed steps
//
// If the policy does not exist, Reconcile takes care of the objects that it left (orphan.go).
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
		return r.reconcileOrphan(ctx, request.Name)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	r.orphans.put(policy.Name, orphan{})
	state, err := r.observe(ctx, policy)
	if err != nil {
		return ctrl.Result{}, err
	}
	if pending := r.verify(&state); pending > 0 {
		return ctrl.Result{RequeueAfter: pending}, nil
	}
	before := policy.Status.DeepCopy()
	decided := r.bundleWrites.pace(policy.Name, decide(ctx, state), r.Now())
	decided = r.progress.pace(policy.Name, *before, decided, r.Now())
	done, applyErr := r.apply(ctx, policy, decided)
	reportErr := r.report(ctx, policy, *before, decided, done, applyErr)
	return resultOf(decided, applyErr, reportErr)
}

// verify adds the answers of converter pods to probes, and what they report. Pods that have no
// answer are probed in the background. While a pod is probed for the first time, pending is the time
// to wait for its answer.
func (r *ConversionPolicyReconciler) verify(state *observed.Cluster) (pending time.Duration) {
	// A foreign write is repaired without a proof, so do not wait for one.
	if !state.Policy.Spec.Paused && state.Policy.Spec.Unsupported() == "" {
		if trust := plan.TrustOf(*state); !trust.Drifted {
			pending = r.Prober.observe(state, trust)
		}
	}
	r.Prober.fillRulesets(state)
	r.Prober.fillReports(state)
	return pending
}

// forget drops the state of a deleted policy and cancels its background work.
func (r *ConversionPolicyReconciler) forget(policy string) {
	r.Checks.forget(policy)
	r.Prober.forget(policy)
	r.background.end(policy)
	r.rules.forget(policy)
	r.rulesets.forget(policy)
	r.fleetUsers.forget(policy)
	r.bundleWrites.forget(policy)
	r.progress.forget(policy)
	r.definitions.forget(policy)
}

// resultOf returns the result of a reconciliation whose writes returned errs. After a conflict
// with another client, it requeues the policy instead of failing.
func resultOf(decided plan.Plan, errs ...error) (ctrl.Result, error) {
	if slices.ContainsFunc(errs, apierrors.IsConflict) {
		return ctrl.Result{RequeueAfter: conflictPause}, nil
	}
	if err := errors.Join(errs...); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: decided.RecheckAfter}, nil
}

// conflictPause lets the cache receive the write that caused the conflict.
const conflictPause = 200 * time.Millisecond

// decide makes the plan, and records its outcome in the trace.
func decide(ctx context.Context, state observed.Cluster) (decided plan.Plan) {
	_ = tracing.Span(ctx, "plan", func(ctx context.Context) error { // planning cannot fail
		decided = plan.Make(state)
		if ready := apimeta.FindStatusCondition(decided.Status.Conditions, v1alpha1.ReadyCondition); ready != nil {
			tracing.Note(ctx, tracing.Ready.String(ready.Reason), tracing.Steps.Int(len(decided.Steps)))
		}
		return nil
	})
	return decided
}

// traceObserved adds the observed generations to the trace.
func traceObserved(ctx context.Context, state observed.Cluster) {
	tracing.Note(ctx, tracing.PolicyGeneration.Int64(state.Policy.Generation))
	if crd := state.CRD; crd != nil {
		tracing.Note(ctx, tracing.CRD.String(crd.Name), tracing.CRDGeneration.Int64(crd.Generation))
	}
}

// spanName names the span of a step by its kind, to keep the number of names small.
func spanName(s step.Step) string { return "apply " + reflect.TypeOf(s).Name() }
