// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan"
)

// bySource finds the policies whose certificates come from a Secret.
const bySource = "sourceSecret"

// watchSources tells of changes of Secrets that somebody else keeps. They carry none
// of the operator's labels, and so are in no cache; to see that one of them has
// changed, its metadata is enough.
func (r *ConversionPolicyReconciler) watchSources(ctx context.Context, mgr ctrl.Manager) (source.Source, error) {
	err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.ConversionPolicy{}, bySource, func(object client.Object) []string {
		policy, _ := object.(*v1alpha1.ConversionPolicy)
		return []string{plan.SourceSecret(policy)}
	})
	if err != nil {
		return nil, err
	}
	others, err := labels.NewRequirement(plan.ManagedByLabel, selection.NotEquals, []string{plan.ManagedBy})
	if err != nil {
		return nil, err
	}
	metadata, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultNamespaces:    map[string]cache.Config{r.Settings.Namespace: {}},
		DefaultLabelSelector: labels.NewSelector().Add(*others),
		DefaultTransform:     withoutAnnotations,
	})
	if err != nil {
		return nil, err
	}
	if err := mgr.Add(metadata); err != nil {
		return nil, err
	}
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return source.Kind(metadata, secret, handler.TypedEnqueueRequestsFromMapFunc(r.policiesFrom)), nil
}

// policiesFrom maps a Secret of somebody else to the policies whose certificates come from it.
func (r *ConversionPolicyReconciler) policiesFrom(ctx context.Context, secret *metav1.PartialObjectMetadata) []reconcile.Request {
	policies := &v1alpha1.ConversionPolicyList{}
	if err := r.Client.List(ctx, policies, client.MatchingFields{bySource: secret.Name}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Mapping a Secret to its policies failed", "secret", secret.Name)
		return nil
	}
	requests := make([]reconcile.Request, 0, len(policies.Items))
	for _, policy := range policies.Items {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: policy.Name}})
	}
	return requests
}
