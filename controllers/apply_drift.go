// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan"
)

// driftAction names, in events, what is done about each answer.
var driftAction = map[v1alpha1.DriftAnswer]struct{ reason, action string }{
	v1alpha1.DriftRepaired:  {v1alpha1.ReasonConversionDrifted, "Repair"},
	v1alpha1.DriftReported:  {v1alpha1.ReasonConversionDrifted, "Report"},
	v1alpha1.DriftContested: {v1alpha1.ReasonConversionContested, "Stall"},
}

// recordDrift writes to the policy's status before the CustomResourceDefinition
// is touched, so that no repair goes uncounted: not when the manager dies in
// between, nor when it decided by a status that was stale. Then it tells, also
// where the CustomResourceDefinition's author looks.
func (r *ConversionPolicyReconciler) recordDrift(ctx context.Context, policy *v1alpha1.ConversionPolicy, step plan.RecordDrift) error {
	base := policy.DeepCopy()
	policy.Status.Drift, policy.Status.Evidence = &step.Drift, step.Evidence
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, policy, patch); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Somebody else wrote spec.conversion", "manager", step.Drift.LastManager, "answer", step.Drift.Answer)
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: policy.Name, UID: step.CRD}}
	does := driftAction[step.Drift.Answer]
	r.Recorder.Eventf(policy, nil, corev1.EventTypeWarning, does.reason, does.action, "%s", shorten(step.Note))
	r.Recorder.Eventf(crd, policy, corev1.EventTypeWarning, does.reason, does.action, "%s", shorten(step.Note))
	return nil
}
