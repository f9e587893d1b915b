// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan"
	"github.com/conversion-operator/conversion-operator/internal/tracing"
)

// observe reads everything that a decision depends on. Where a converter pod is probed
// for the first time, pending is for how long it is worth to wait for its answer.
func (r *ConversionPolicyReconciler) observe(
	ctx context.Context, policy *v1alpha1.ConversionPolicy,
) (observed plan.Observed, pending time.Duration, err error) {
	err = tracing.Span(ctx, "observe", func(ctx context.Context) error {
		if observed, err = r.gather(ctx, policy); err == nil {
			pending = r.observeProofs(&observed)
		}
		return err
	})
	noteObserved(ctx, observed)
	return observed, pending, err
}

// gather reads.
func (r *ConversionPolicyReconciler) gather(ctx context.Context, policy *v1alpha1.ConversionPolicy) (plan.Observed, error) {
	observed := plan.Observed{Settings: r.Settings, Now: r.Now(), Policy: policy}
	for _, read := range []func(context.Context, *plan.Observed) error{
		r.observeCRD, r.observeCertificates, r.observePlans, r.observeDeployment, r.observeImages,
		r.observePods, r.observeBudget, r.observeService, r.observeEndpoints, r.observeExternal,
		r.observeRuns, r.observeForeignMigration, r.observeObjectRights, r.observeGranted, r.observeAdmission,
	} {
		if err := read(ctx, &observed); err != nil {
			return observed, fmt.Errorf("observe policy %s: %w", policy.Name, err)
		}
	}
	return observed, nil
}

// observeProofs fills in what was found out in the background.
func (r *ConversionPolicyReconciler) observeProofs(observed *plan.Observed) (pending time.Duration) {
	r.Checks.observe(observed)
	// To undo a foreign write takes no proof, and waits for none.
	if !observed.Policy.Spec.Suspend {
		if trust := plan.TrustOf(*observed); !trust.Drifted {
			pending = r.Prober.observe(observed, trust)
		}
	}
	r.Prober.tell(observed)
	return pending
}

// observeCRD reads the CustomResourceDefinition live: every write to it is
// pinned to what is read here, and caching all of them in full costs memory.
func (r *ConversionPolicyReconciler) observeCRD(ctx context.Context, observed *plan.Observed) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := r.Live.Get(ctx, client.ObjectKey{Name: observed.Policy.Name}, crd)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	observed.CRD = crd
	observed.Rules = r.rules.result(observed.Policy, crd)
	return nil
}

// observePlans reads which rulesets there are. One that this version of the operator
// cannot read, or that is not what its name says, is of no use to pods either. A ruleset
// may be large, so that it is read where it is in the cache, and not copied.
func (r *ConversionPolicyReconciler) observePlans(ctx context.Context, observed *plan.Observed) error {
	plans := &corev1.ConfigMapList{}
	err := r.Client.List(ctx, plans, r.childrenOf(observed.Policy), client.HasLabels{plan.RevisionLabel}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return err
	}
	for i, readable := range r.rulesets.readable(observed.Policy.Name, plans.Items) {
		observed.Revisions = append(observed.Revisions, plan.StoredRevision{Hash: plans.Items[i].Labels[plan.RevisionLabel], Readable: readable})
	}
	return nil
}

// observeDeployment reads why there are no pods, and whether all are of one template.
func (r *ConversionPolicyReconciler) observeDeployment(ctx context.Context, observed *plan.Observed) error {
	deployment := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: r.Settings.Namespace, Name: plan.ChildName(observed.Policy.Name)}
	if err := r.Client.Get(ctx, key, deployment); err != nil {
		return client.IgnoreNotFound(err)
	}
	status := deployment.Status
	observed.Deployed, observed.PodFailure = true, replicaFailure(deployment)
	observed.RolledOut = status.ObservedGeneration >= deployment.Generation && status.UpdatedReplicas == status.Replicas
	return nil
}

func (r *ConversionPolicyReconciler) observeService(ctx context.Context, observed *plan.Observed) error {
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Settings.Namespace, Name: plan.ChildName(observed.Policy.Name)}, &corev1.Service{})
	observed.Exposed = err == nil
	return client.IgnoreNotFound(err)
}

func (r *ConversionPolicyReconciler) observeBudget(ctx context.Context, observed *plan.Observed) error {
	budget := &policyv1.PodDisruptionBudget{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Settings.Namespace, Name: plan.ChildName(observed.Policy.Name)}, budget)
	if budget.Status.ObservedGeneration == budget.Generation {
		observed.Evictable = int(budget.Status.DisruptionsAllowed)
	}
	return client.IgnoreNotFound(err)
}

func (r *ConversionPolicyReconciler) observeEndpoints(ctx context.Context, observed *plan.Observed) error {
	list := &discoveryv1.EndpointSliceList{}
	err := r.Client.List(ctx, list, client.InNamespace(r.Settings.Namespace),
		client.MatchingLabels{discoveryv1.LabelServiceName: plan.ChildName(observed.Policy.Name)})
	if err != nil {
		return err
	}
	observed.PortEndpoints = map[string]int{}
	for _, slice := range list.Items {
		ready := 0
		for _, endpoint := range slice.Endpoints {
			if ptr.Deref(endpoint.Conditions.Ready, true) {
				ready += len(endpoint.Addresses)
			}
		}
		observed.Endpoints += ready
		for _, port := range slice.Ports {
			observed.PortEndpoints[ptr.Deref(port.Name, "")] += ready
		}
	}
	return nil
}

func (r *ConversionPolicyReconciler) observeObjectRights(ctx context.Context, observed *plan.Observed) error {
	for name, there := range map[string]*bool{
		plan.ReadRightsName(observed.Policy.Name):  &observed.ReadRights,
		plan.ClearRightsName(observed.Policy.Name): &observed.CleanRights,
	} {
		err := r.Client.Get(ctx, client.ObjectKey{Name: name}, &rbacv1.ClusterRole{})
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		*there = err == nil
	}
	return nil
}

func (r *ConversionPolicyReconciler) observeAdmission(ctx context.Context, observed *plan.Observed) error {
	admission := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: plan.AdmissionName(observed.Policy.Name)}, admission)
	if err == nil {
		observed.Admission = admission
	}
	return client.IgnoreNotFound(err)
}

// childrenOf selects what was made for a policy, in the operator's namespace.
func (r *ConversionPolicyReconciler) childrenOf(policy *v1alpha1.ConversionPolicy) client.ListOption {
	return &children{namespace: r.Settings.Namespace, policy: policy.Name}
}

type children struct{ namespace, policy string }

func (c *children) ApplyToList(options *client.ListOptions) {
	client.InNamespace(c.namespace).ApplyToList(options)
	childrenNamed(c.policy).ApplyToList(options)
}
