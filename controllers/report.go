// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan"
	"github.com/conversion-operator/conversion-operator/internal/tracing"
)

// report writes the status once, where it changed, and then an event for every
// condition that did. A conflict is no news for users: the next look decides anew.
func (r *ConversionPolicyReconciler) report(
	ctx context.Context, policy *v1alpha1.ConversionPolicy, decided plan.Plan, applyErr error,
) error {
	return tracing.Span(ctx, "report", func(ctx context.Context) error { return r.writeStatus(ctx, policy, decided, applyErr) })
}

func (r *ConversionPolicyReconciler) writeStatus(
	ctx context.Context, policy *v1alpha1.ConversionPolicy, decided plan.Plan, applyErr error,
) error {
	status := decided.Status
	if applyErr != nil && !apierrors.IsConflict(applyErr) {
		explain(&status, policy, applyErr, metav1.NewTime(r.Now()))
	}
	if equality.Semantic.DeepEqual(policy.Status, status) {
		return nil
	}
	before := policy.DeepCopy()
	policy.Status = status
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, policy, patch); err != nil {
		return client.IgnoreNotFound(err)
	}
	r.announce(policy, plan.Events(before.Status, status))
	for _, step := range decided.Steps {
		if warning, found := step.(plan.Warn); found {
			r.warn(policy, warning)
		}
	}
	return nil
}

// announce tells what happened, on the policy and, where it concerns the author of
// the CustomResourceDefinition, there.
func (r *ConversionPolicyReconciler) announce(policy *v1alpha1.ConversionPolicy, happened []plan.Event) {
	for _, event := range happened {
		kind := corev1.EventTypeNormal
		if event.Warning {
			kind = corev1.EventTypeWarning
		}
		r.Recorder.Eventf(policy, nil, kind, event.Reason, event.Action, "%s", shorten(event.Note))
		if event.CRD != "" {
			crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: policy.Name, UID: event.CRD}}
			r.Recorder.Eventf(crd, policy, kind, event.Reason, event.Action, "%s", shorten(event.Note))
		}
	}
}

// explain lets an error of a step show up where users look.
func explain(status *v1alpha1.ConversionPolicyStatus, policy *v1alpha1.ConversionPolicy, err error, now metav1.Time) {
	for kind, value := range map[string]metav1.ConditionStatus{
		v1alpha1.ReadyCondition:       metav1.ConditionFalse,
		v1alpha1.ReconcilingCondition: metav1.ConditionTrue,
		v1alpha1.StalledCondition:     metav1.ConditionFalse,
	} {
		apimeta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: kind, Status: value, Reason: v1alpha1.ReasonApplyFailed, Message: shorten(err.Error()),
			ObservedGeneration: policy.Generation, LastTransitionTime: now,
		})
	}
}

// warn says something where the authors of both look. The status has it by then:
// who decided by a stale one has lost against that write, and says nothing.
func (r *ConversionPolicyReconciler) warn(policy *v1alpha1.ConversionPolicy, step plan.Warn) {
	r.Recorder.Eventf(policy, step.CRD, corev1.EventTypeWarning, step.Reason, "Warn", "%s", shorten(step.Note))
	r.Recorder.Eventf(step.CRD, policy, corev1.EventTypeWarning, step.Reason, "Warn", "%s", shorten(step.Note))
}

// maxNote is the API server's limit on an event's note, in bytes.
const maxNote = 1024

// shorten cuts a text to what an event can hold.
func shorten(text string) string {
	if len(text) <= maxNote {
		return text
	}
	return strings.ToValidUTF8(text[:maxNote-len("...")], "") + "..."
}
