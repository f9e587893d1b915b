// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/tracing"
)

// observe reads everything that a decision depends on, and the results of background checks.
func (r *ConversionPolicyReconciler) observe(ctx context.Context, policy *v1alpha1.ConversionPolicy) (state observed.Cluster, err error) {
	err = tracing.Span(ctx, "observe", func(ctx context.Context) error {
		if state, err = r.gather(ctx, policy); err == nil {
			r.Checks.observe(&state)
		}
		return err
	})
	traceObserved(ctx, state)
	return state, err
}

// gather reads the cluster.
func (r *ConversionPolicyReconciler) gather(ctx context.Context, policy *v1alpha1.ConversionPolicy) (observed.Cluster, error) {
	state := observed.Cluster{Settings: r.settings(), Now: r.Now(), Policy: policy}
	for _, read := range []func(context.Context, *observed.Cluster) error{
		r.observeCRD, r.observeComposite, r.observeCertificates, r.observeRulesets, r.observeDeployment, r.observeImages,
		r.observePods, r.observeBudget, r.observeService, r.observeEndpoints, r.observeExternal,
		r.observeFleets, r.observeRuns, r.observeForeignMigration, r.observeObjectRights, r.observeGranted, r.observeAdmission,
	} {
		if err := read(ctx, &state); err != nil {
			return state, fmt.Errorf("observe policy %s: %w", policy.Name, err)
		}
	}
	return state, nil
}

// observeCRD reads the CustomResourceDefinition live: every write to it is pinned to the
// resourceVersion read here, and caching all definitions in full costs memory.
func (r *ConversionPolicyReconciler) observeCRD(ctx context.Context, state *observed.Cluster) error {
	crd, err := r.definition(ctx, state.Policy.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	r.definitions.put(crd.Name, crd.ResourceVersion)
	state.CRD = crd
	state.Rules = r.rules.result(state.Policy, crd)
	return nil
}

// observeRulesets reads which rulesets are stored. A ruleset that this version of the operator
// cannot read, or whose hash does not match its name, is not readable by converter pods either.
// Rulesets may be large, so they are not copied from the cache.
func (r *ConversionPolicyReconciler) observeRulesets(ctx context.Context, state *observed.Cluster) error {
	list := &corev1.ConfigMapList{}
	err := r.Client.List(ctx, list, r.childrenOf(state.Policy), client.MatchingLabels{names.ComponentLabel: names.ConverterComponent}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return err
	}
	state.Revisions = append(state.Revisions, r.rulesets.read(state.Policy.Name, list.Items)...)
	return nil
}

// observeDeployment reads why pods are missing.
func (r *ConversionPolicyReconciler) observeDeployment(ctx context.Context, state *observed.Cluster) error {
	deployment := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: r.Settings.Namespace, Name: names.Child(state.Policy.Name)}
	if err := r.Client.Get(ctx, key, deployment); err != nil {
		return client.IgnoreNotFound(err)
	}
	state.Deployed, state.PodFailure = true, replicaFailure(deployment)
	return nil
}

func (r *ConversionPolicyReconciler) observeService(ctx context.Context, state *observed.Cluster) error {
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Settings.Namespace, Name: names.Child(state.Policy.Name)}, &corev1.Service{})
	state.Exposed = err == nil
	return client.IgnoreNotFound(err)
}

func (r *ConversionPolicyReconciler) observeBudget(ctx context.Context, state *observed.Cluster) (err error) {
	state.Evictable, err = r.evictable(ctx, names.Child(state.Policy.Name))
	return err
}

// evictable is the number of pods that a PodDisruptionBudget allows to evict now.
func (r *ConversionPolicyReconciler) evictable(ctx context.Context, name string) (int, error) {
	budget := &policyv1.PodDisruptionBudget{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Settings.Namespace, Name: name}, budget)
	if err != nil || budget.Status.ObservedGeneration != budget.Generation {
		return 0, client.IgnoreNotFound(err)
	}
	return int(budget.Status.DisruptionsAllowed), nil
}

func (r *ConversionPolicyReconciler) observeEndpoints(ctx context.Context, state *observed.Cluster) (err error) {
	state.Endpoints, state.PortEndpoints, err = r.endpoints(ctx, names.Child(state.Policy.Name))
	return err
}

// endpoints counts the ready endpoints of a Service, all and by the names of its ports.
func (r *ConversionPolicyReconciler) endpoints(ctx context.Context, service string) (all int, byPort map[string]int, err error) {
	list := &discoveryv1.EndpointSliceList{}
	err = r.Client.List(ctx, list, client.InNamespace(r.Settings.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service})
	if err != nil {
		return 0, nil, err
	}
	byPort = map[string]int{}
	for _, slice := range list.Items {
		ready := 0
		for _, endpoint := range slice.Endpoints {
			if ptr.Deref(endpoint.Conditions.Ready, true) {
				ready += len(endpoint.Addresses)
			}
		}
		all += ready
		for _, port := range slice.Ports {
			byPort[ptr.Deref(port.Name, "")] += ready
		}
	}
	return all, byPort, nil
}

func (r *ConversionPolicyReconciler) observeObjectRights(ctx context.Context, state *observed.Cluster) error {
	for name, there := range map[string]*bool{
		names.ReadRights(state.Policy.Name):  &state.ReadRights,
		names.CleanRights(state.Policy.Name): &state.CleanRights,
	} {
		err := r.Client.Get(ctx, client.ObjectKey{Name: name}, &rbacv1.ClusterRole{})
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		*there = err == nil
	}
	return nil
}

func (r *ConversionPolicyReconciler) observeAdmission(ctx context.Context, state *observed.Cluster) error {
	admission := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: names.Admission(state.Policy.Name)}, admission)
	if err == nil {
		state.Admission = admission
	}
	return client.IgnoreNotFound(err)
}

// childrenOf selects the objects of a policy in the operator's namespace.
func (r *ConversionPolicyReconciler) childrenOf(policy *v1alpha1.ConversionPolicy) client.ListOption {
	return (&client.ListOptions{}).ApplyOptions([]client.ListOption{client.InNamespace(r.Settings.Namespace), instanceOf(names.Child(policy.Name))})
}
