// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// evict evicts one pod by its uid. The API server checks the PodDisruptionBudget. If the API
// server answers that the client has to retry after some seconds, client-go waits by default; with
// MaxRetries(0) the next reconciliation retries instead.
func (r *ConversionPolicyReconciler) evict(ctx context.Context, s step.EvictPod) error {
	eviction := &policyv1.Eviction{ObjectMeta: r.named(s.Name),
		DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(s.UID))}}
	err := r.pods.Post().MaxRetries(0).Namespace(eviction.Namespace).Resource("pods").Name(eviction.Name).SubResource("eviction").
		Body(eviction).Do(ctx).Error()
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		return errPostponed // the pod is gone
	case apierrors.IsTooManyRequests(err):
		ctrl.LoggerFrom(ctx).Info("The API server does not allow the eviction of a converter pod yet", "pod", s.Name, "reason", err.Error())
		return errPostponed
	}
	return err
}

// refreshPod changes an annotation of a pod, which makes its kubelet update mounted volumes.
func (r *ConversionPolicyReconciler) refreshPod(ctx context.Context, s step.RefreshPod) error {
	patch := mergePatch(map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{s.Annotation: s.Value}},
	})
	return client.IgnoreNotFound(r.Client.Patch(ctx, &corev1.Pod{ObjectMeta: r.named(s.Name)}, patch, fieldOwner))
}
