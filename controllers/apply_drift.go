// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan"
)

// recordDrift writes the policy's status before the CustomResourceDefinition is
// touched, so that no repair goes uncounted: not when the manager dies in between, nor
// when it decided by a status that was stale. It is the status write of this
// reconciliation: what a later step fails of is reported by the next.
func (r *ConversionPolicyReconciler) recordDrift(
	ctx context.Context, policy *v1alpha1.ConversionPolicy, step plan.RecordDrift, status v1alpha1.ConversionPolicyStatus,
) error {
	if err := r.writeStatus(ctx, policy, status); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Somebody else wrote spec.conversion", "manager", step.Drift.LastManager, "answer", step.Drift.Answer)
	return nil
}
