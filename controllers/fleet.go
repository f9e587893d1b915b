// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/certificates"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/fleet"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// fleetReconciler reconciles ConverterFleets: their pods and certificates. Policies store their
// rulesets in a fleet, and are woken when something about it changes that matters to them.
type fleetReconciler struct {
	*ConversionPolicyReconciler
	// prober shows which certificate pods serve.
	prober *Prober

	// states are what mattered to policies when they were woken last, by fleet and policy.
	states map[string]map[string]string
	// loaded tells which stored rulesets this version of the operator can read, by fleet and key.
	loaded map[string]map[string]loaded
	// stored tells which rulesets are stored and readable, by fleet and owner.
	stored map[string]map[string]string
}

// setupFleets registers the controller of fleets.
func (r *ConversionPolicyReconciler) setupFleets(ctx context.Context, mgr ctrl.Manager, secrets cache.Cache) error {
	r.fleetBackground = newBackground(ctx)
	f := &fleetReconciler{ConversionPolicyReconciler: r, prober: NewProber(r.Prober.lifetime),
		states: map[string]map[string]string{}, loaded: map[string]map[string]loaded{}, stored: map[string]map[string]string{}}
	f.prober.background = r.fleetBackground
	r.fleetUsers.wake = func(fleet string) {
		r.fleetBackground.run(fleet, func(life lifetime) { r.fleetBackground.wake(life, fleet) })
	}
	fleets := ctrl.NewControllerManagedBy(mgr).
		Named("converterfleet").
		WithOptions(controller.Options{MaxConcurrentReconciles: 1}). // fleetReconciler is not safe for concurrent use
		For(&v1alpha1.ConverterFleet{})
	for _, child := range []client.Object{
		&corev1.ConfigMap{}, &corev1.Secret{}, &corev1.Service{}, &corev1.Pod{}, &appsv1.Deployment{}, &policyv1.PodDisruptionBudget{}, &discoveryv1.EndpointSlice{},
	} {
		fleets = fleets.Watches(child, soon(fleetOfChild))
	}
	if err := errors.Join(mgr.Add(manager.RunnableFunc(f.prober.reprobe)), mgr.Add(manager.RunnableFunc(r.fleetBackground.drain))); err != nil {
		return err
	}
	return fleets.WatchesRawSource(sourceOf(secrets, f.fleetsFrom)).
		WatchesRawSource(source.Channel(r.fleetBackground.woken, soon(itself))).Complete(f)
}

// fleetPause is the time in which changes are taken together: each policy that comes or goes changes a
// fleet several times, and a reconciliation reads all policies and rulesets.
const fleetPause = 100 * time.Millisecond

// soon reconciles what an object is mapped to after fleetPause, once for all changes meanwhile.
func soon(of handler.MapFunc) handler.EventHandler {
	add := func(ctx context.Context, object client.Object, queue queue) {
		for _, request := range of(ctx, object) {
			queue.AddAfter(request, fleetPause)
		}
	}
	funcs := funcsOf(add)
	funcs.UpdateFunc = func(ctx context.Context, e event.UpdateEvent, queue queue) {
		add(ctx, e.ObjectOld, queue)
		add(ctx, e.ObjectNew, queue)
	}
	return funcs
}

// itself maps an object to the object.
func itself(_ context.Context, object client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(object)}}
}

// fleetsFrom maps a Secret of another client to the fleets whose certificates come from it.
func (f *fleetReconciler) fleetsFrom(ctx context.Context, secret *metav1.PartialObjectMetadata) (requests []reconcile.Request) {
	fleets := &v1alpha1.ConverterFleetList{}
	if err := f.Client.List(ctx, fleets, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Mapping a Secret to its fleets failed", "secret", secret.Name)
		return nil
	}
	for i := range fleets.Items {
		if certificates.SourceSecretOf(&fleets.Items[i]) == secret.Name {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: fleets.Items[i].Name}})
		}
	}
	return requests
}

// fleetOfChild maps what belongs to a fleet to the fleet.
func fleetOfChild(_ context.Context, child client.Object) []reconcile.Request {
	instance := child.GetLabels()[names.InstanceLabel]
	if service := child.GetLabels()[discoveryv1.LabelServiceName]; service != "" {
		instance = service
	}
	if name := names.FleetOf(instance); name != "" {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
	}
	return nil
}

// Reconcile takes one fleet to its next state: observe, probe its pods, decide, apply, report. The
// fleet has a finalizer before a policy may use it, so that it outlives its policies.
func (f *fleetReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := &v1alpha1.ConverterFleet{}
	err := f.Client.Get(ctx, request.NamespacedName, object)
	if apierrors.IsNotFound(err) {
		return resultOf(plan.Plan{}, f.cleanUp(ctx, request.Name))
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	state, err := f.gather(ctx, object)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observe fleet %s: %w", object.Name, err)
	}
	if pending := f.probe(&state); pending > 0 {
		return ctrl.Result{RequeueAfter: pending}, nil
	}
	decided := fleet.Make(state)
	if decided.Finalizer {
		if err := f.setFinalizer(ctx, object, controllerutil.AddFinalizer); err != nil { // it may have been deleted meanwhile
			return resultOf(plan.Plan{}, err)
		}
	}
	for _, s := range decided.Steps {
		if err := f.do(ctx, object, s); err != nil && !errors.Is(err, errPostponed) {
			err = fmt.Errorf("%s: %w", step.Describe(s), err)
			if !apierrors.IsConflict(err) {
				setApplyFailed(&decided.Status.Conditions, object.Generation, err, metav1.NewTime(f.Now()))
				err = errors.Join(err, f.writeFleetStatus(ctx, object, decided.Status))
			}
			return resultOf(plan.Plan{}, err)
		}
	}
	if !decided.Finalizer {
		if err := f.setFinalizer(ctx, object, controllerutil.RemoveFinalizer); err != nil || !object.DeletionTimestamp.IsZero() {
			return resultOf(plan.Plan{}, err)
		}
	}
	err = f.writeFleetStatus(ctx, object, decided.Status)
	f.wakePolicies(&state)
	return resultOf(plan.Plan{RecheckAfter: decided.RecheckAfter}, err)
}

// cleanUp deletes what a fleet left that no longer exists, unless policies use it: someone may have
// removed its finalizer.
func (f *fleetReconciler) cleanUp(ctx context.Context, name string) error {
	f.prober.forget(name)
	state := fleet.Observed{Fleet: &v1alpha1.ConverterFleet{ObjectMeta: metav1.ObjectMeta{Name: name}}}
	if err := errors.Join(f.gatherPolicies(ctx, &state), f.gatherRulesets(ctx, &state)); err != nil || state.Used() {
		return err
	}
	_, serving, _ := names.FleetSecrets(name)
	secret, err := f.secret(ctx, f.Client, serving)
	if _, scaled, failed := f.deployment(ctx, names.Fleet(name)); err != nil || failed != nil || secret == nil && scaled == 0 {
		return errors.Join(err, failed)
	}
	return f.deleteChildren(ctx, names.Fleet(name))
}

// gather reads the cluster.
func (f *fleetReconciler) gather(ctx context.Context, object *v1alpha1.ConverterFleet) (state fleet.Observed, err error) {
	state = fleet.Observed{Settings: f.settings(), Now: f.Now(), Fleet: object}
	if err := f.gatherCertificates(ctx, &state); err != nil {
		return state, err
	}
	if state.Pods, state.Ending, err = f.listPods(ctx, names.Fleet(object.Name)); err != nil {
		return state, err
	}
	if state.Evictable, err = f.evictable(ctx, names.Fleet(object.Name)); err != nil {
		return state, err
	}
	state.Others = f.otherNodes(ctx, state.Pods)
	slices.SortFunc(state.Pods, func(a, b observed.Pod) int { return cmp.Compare(a.Name, b.Name) })
	if state.PodFailure, state.Scaled, err = f.deployment(ctx, names.Fleet(object.Name)); err != nil {
		return state, err
	}
	if err := f.gatherPolicies(ctx, &state); err != nil {
		return state, err
	}
	return state, f.gatherRulesets(ctx, &state)
}

func (f *fleetReconciler) gatherPolicies(ctx context.Context, state *fleet.Observed) error {
	policies := &v1alpha1.ConversionPolicyList{}
	err := f.Client.List(ctx, policies, client.UnsafeDisableDeepCopy)
	state.Policies = f.fleetUsers.policiesOf(state.Fleet.Name, policies.Items)
	return err
}

func (f *fleetReconciler) gatherCertificates(ctx context.Context, state *fleet.Observed) (err error) {
	authority, serving, issued := names.FleetSecrets(state.Fleet.Name)
	if state.Authority, err = f.secret(ctx, f.Client, authority); err != nil {
		return err
	}
	if state.Certificate, err = f.secret(ctx, f.Client, serving); err != nil {
		return err
	}
	if name := certificates.SourceSecretOf(state.Fleet); name != "" {
		if state.Source, err = f.secret(ctx, f.Live, name); err != nil {
			return err
		}
	}
	if spec := state.Fleet.Spec.Certificates; spec != nil && spec.CertManager != nil {
		state.Request, err = f.request(ctx, issued)
	}
	return err
}

func (f *fleetReconciler) gatherRulesets(ctx context.Context, state *fleet.Observed) error {
	shards, err := f.shards(ctx, state.Fleet.Name)
	if err == nil {
		f.readShards(state, shards)
	}
	return err
}

// readShards reads which rulesets are stored, and whether this version of the operator can read
// them. Each content is loaded once. A policy that left rulesets and no longer exists is taken care
// of as an orphan (orphan.go).
func (f *fleetReconciler) readShards(state *fleet.Observed, shards map[string]*corev1.ConfigMap) {
	owners := map[string]bool{}
	for _, policy := range state.Policies {
		owners[names.Child(policy.Name)] = true
	}
	known, present, all := f.loaded[state.Fleet.Name], map[string]loaded{}, map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(shards)) {
		for _, key := range slices.Sorted(maps.Keys(shards[name].BinaryData)) {
			hash, is := conversion.StoredHash(key)
			if !is {
				continue
			}
			owner, _ := conversion.StoredOwner(key)
			stored := shards[name].BinaryData[key]
			of, found := known[key]
			if !found || !bytes.Equal(of.stored, stored) {
				ruleset, err := conversion.LoadStored(hash, stored)
				of.readable = err == nil
				if err == nil && !owners[owner] {
					f.orphans.add(ruleset.CRD, orphan{})
					f.background.run(ruleset.CRD, func(life lifetime) { f.background.wake(life, ruleset.CRD) })
				}
			}
			of.stored = stored // the previous content can be freed
			present[key] = of
			state.Stored++
			state.Orphaned = state.Orphaned || !owners[owner]
			all[owner] += fmt.Sprintln(name, hash, of.readable)
			if !of.readable {
				state.Unreadable = append(state.Unreadable, key)
			}
		}
	}
	slices.Sort(state.Unreadable)
	f.loaded[state.Fleet.Name], f.stored[state.Fleet.Name] = present, all
}

// probe adds whether pods serve their certificate. Policies probe pods for their rulesets.
func (f *fleetReconciler) probe(state *fleet.Observed) (pending time.Duration) {
	if state.Certificate == nil {
		return 0
	}
	current, successor := fleet.Trust(*state)
	scope := probeScope{policy: state.Fleet.Name, leaf: state.Certificate.Data[corev1.TLSCertKey], lasts: f.prober.lifetime}
	f.prober.retainPods(state.Fleet.Name, state.Pods)
	f.Prober.retainPods(names.Fleet(state.Fleet.Name), state.Pods) // the rulesets that they serve
	for i := range state.Pods {
		pod := &state.Pods[i]
		if !pod.Ready {
			continue
		}
		pending = max(pending, f.prober.proofOf(pod, plan.Trust{CABundle: current, Successor: successor}, func(caBundle []byte) probeRequest {
			to := f.certificateProbe(pod, caBundle)
			return probeRequest{probeScope: scope, pod: pod.UID, proof: fingerprintOf(to, scope.leaf), send: func(ctx context.Context) (string, error) {
				_, err := f.prober.probe(ctx, to)
				return "", err
			}}
		}))
	}
	return pending
}

func (f *fleetReconciler) do(ctx context.Context, object *v1alpha1.ConverterFleet, s step.Step) error {
	if evict, is := s.(step.EvictPod); is {
		err := f.evict(ctx, evict)
		if err == nil {
			f.Recorder.Eventf(object, nil, corev1.EventTypeNormal, v1alpha1.ReasonPodEvicted, "Evict", "%s", evict.Note)
		}
		return err
	}
	return f.doFor(ctx, fleetOwner(object), s)
}

// writeFleetStatus writes the status if it differs, and then an event for each condition that changed.
func (f *fleetReconciler) writeFleetStatus(ctx context.Context, object *v1alpha1.ConverterFleet, status v1alpha1.ConverterFleetStatus) error {
	if equality.Semantic.DeepEqual(object.Status, status) {
		return nil
	}
	base := object.DeepCopy()
	object.Status = status
	if err := f.Client.Status().Patch(ctx, object, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
		return client.IgnoreNotFound(err)
	}
	f.emit(object, fleet.Events(base.Status, status))
	return nil
}

// wakePolicies wakes the policies of a fleet when something changed that they depend on: which pods
// are ready, what they serve, whether the fleet exists, and which of their own rulesets are stored.
// Changes of other rulesets do not matter to them: with many policies, each would wake all others.
func (f *fleetReconciler) wakePolicies(state *fleet.Observed) {
	matters := []any{state.Fleet.DeletionTimestamp.IsZero(), state.Fleet.Finalizers, state.Fleet.Generation, state.PodFailure}
	if secret := state.Certificate; secret != nil {
		matters = append(matters, names.Hash(string(secret.Data[corev1.TLSCertKey]), string(secret.Data[observed.CAKey])))
	}
	for _, pod := range state.Pods {
		matters = append(matters, pod.UID, pod.Ready, pod.IP, pod.Trouble)
	}
	now := fmt.Sprint(matters...)
	before, after := f.states[state.Fleet.Name], map[string]string{}
	for _, policy := range state.Policies {
		after[policy.Name] = now + f.stored[state.Fleet.Name][names.Child(policy.Name)]
	}
	f.states[state.Fleet.Name] = after
	policies := f.background
	for name, is := range after {
		if before[name] != is {
			policies.run(name, func(life lifetime) { policies.wake(life, name) })
		}
	}
}
