// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
)

// evict asks for the end of one pod, and no other of its name. The API server counts
// what its PodDisruptionBudget allows, with the evictions of all others. If it
// answers that the client is to ask again in some seconds, clients wait for that by
// default; here the next reconciliation asks again instead.
func (r *ConversionPolicyReconciler) evict(ctx context.Context, s step.EvictPod) error {
	eviction := &policyv1.Eviction{ObjectMeta: r.named(s.Name),
		DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(s.UID))}}
	err := r.pods.Post().MaxRetries(0).Namespace(eviction.Namespace).Resource("pods").Name(eviction.Name).SubResource("eviction").
		Body(eviction).Do(ctx).Error()
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		return errNotNow // it is gone already
	case apierrors.IsTooManyRequests(err):
		ctrl.LoggerFrom(ctx).Info("A converter pod that answers wrongly may not be evicted for now", "pod", s.Name, "reason", err.Error())
		return errNotNow
	}
	return err
}

// refreshPod changes an annotation of a pod, upon which its kubelet brings what it has
// mounted up to date.
func (r *ConversionPolicyReconciler) refreshPod(ctx context.Context, s step.RefreshPod) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{names.CertificateAnnotation: s.Certificate}},
	})
	if err != nil {
		return err
	}
	return client.IgnoreNotFound(r.Client.Patch(ctx, &corev1.Pod{ObjectMeta: r.named(s.Name)}, client.RawPatch(mergePatch, patch), fieldOwner))
}
