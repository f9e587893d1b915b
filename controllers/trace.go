// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"reflect"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan"
	"github.com/conversion-operator/conversion-operator/internal/tracing"
)

// decide makes the plan.
func decide(ctx context.Context, observed plan.Observed) (decided plan.Plan) {
	_ = tracing.Span(ctx, "plan", func(ctx context.Context) error { // to decide never fails
		decided = plan.Make(observed)
		if ready := apimeta.FindStatusCondition(decided.Status.Conditions, v1alpha1.ReadyCondition); ready != nil {
			tracing.Note(ctx, tracing.Ready.String(ready.Reason), tracing.Steps.Int(len(decided.Steps)))
		}
		return nil
	})
	return decided
}

// noteObserved lets a trace tell which state of the world it is about.
func noteObserved(ctx context.Context, observed plan.Observed) {
	tracing.Note(ctx, tracing.PolicyGeneration.Int64(observed.Policy.Generation))
	if crd := observed.CRD; crd != nil {
		tracing.Note(ctx, tracing.CRD.String(crd.Name), tracing.CRDGeneration.Int64(crd.Generation))
	}
}

// spanOf names a step in a trace: by its kind, of which there are few.
func spanOf(step plan.Step) string { return "apply " + reflect.TypeOf(step).Name() }
