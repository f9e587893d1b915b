// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"slices"
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
	ctx context.Context, policy *v1alpha1.ConversionPolicy, status v1alpha1.ConversionPolicyStatus, applyErr error,
) error {
	return tracing.Span(ctx, "report", func(ctx context.Context) error { return r.writeStatus(ctx, policy, status, applyErr) })
}

func (r *ConversionPolicyReconciler) writeStatus(
	ctx context.Context, policy *v1alpha1.ConversionPolicy, status v1alpha1.ConversionPolicyStatus, applyErr error,
) error {
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
	r.announce(policy, before.Status.Conditions, status.Conditions)
	r.announceRun(policy, plan.RunEvents(before.Status, status))
	return nil
}

// announceRun tells what happened to a migration, on the policy and where the
// author of the CustomResourceDefinition looks.
func (r *ConversionPolicyReconciler) announceRun(policy *v1alpha1.ConversionPolicy, happened []plan.RunEvent) {
	for _, event := range happened {
		kind := corev1.EventTypeNormal
		if event.Warning {
			kind = corev1.EventTypeWarning
		}
		crd := &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: policy.Name, UID: policy.Status.Migration.CRDUID}}
		r.Recorder.Eventf(policy, nil, kind, event.Reason, "Migrate", "%s", shorten(event.Note))
		r.Recorder.Eventf(crd, policy, kind, event.Reason, "Migrate", "%s", shorten(event.Note))
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

// announce makes one event for every condition that changed its status or reason.
func (r *ConversionPolicyReconciler) announce(policy *v1alpha1.ConversionPolicy, before, after []metav1.Condition) {
	for _, condition := range after {
		old := apimeta.FindStatusCondition(before, condition.Type)
		changed := old == nil || old.Status != condition.Status || old.Reason != condition.Reason
		if changed && !repeats(condition, after) {
			r.Recorder.Eventf(policy, nil, severity(condition, after), condition.Reason, condition.Type, "%s", note(condition))
		}
	}
}

// warn says something where the authors of both look.
func (r *ConversionPolicyReconciler) warn(policy *v1alpha1.ConversionPolicy, step plan.Warn) {
	r.Recorder.Eventf(policy, step.CRD, corev1.EventTypeWarning, step.Reason, "Warn", "%s", shorten(step.Note))
	r.Recorder.Eventf(step.CRD, policy, corev1.EventTypeWarning, step.Reason, "Warn", "%s", shorten(step.Note))
}

// repeats reports whether a condition says what another one says: the summaries
// repeat the gate that stopped, and the gates behind it only that they wait.
func repeats(condition metav1.Condition, all []metav1.Condition) bool {
	switch condition.Type {
	case v1alpha1.ReconcilingCondition, v1alpha1.StalledCondition:
		return true
	case v1alpha1.ReadyCondition:
		return slices.ContainsFunc(v1alpha1.Gates, func(gate string) bool {
			found := apimeta.FindStatusCondition(all, gate)
			return found != nil && found.Reason == condition.Reason
		})
	}
	return slices.Contains(toldOtherwise, condition.Reason)
}

// toldOtherwise are the reasons of conditions that have no event: they say
// nothing, or events of their own have told, of drift (apply_drift.go), with who it
// was, and of migration runs.
var toldOtherwise = []string{
	v1alpha1.ReasonNotEvaluated, v1alpha1.ReasonConversionDrifted, v1alpha1.ReasonConversionContested,
	v1alpha1.ReasonVersionsDrifted, v1alpha1.ReasonVersionsContested,
	v1alpha1.ReasonMigrating, v1alpha1.ReasonMigrationPaused, v1alpha1.ReasonPruning, v1alpha1.ReasonMigrated,
	v1alpha1.ReasonObjectsFailed, v1alpha1.ReasonMigrationFailed,
}

// severity is Warning for what does not go on by itself.
func severity(condition metav1.Condition, all []metav1.Condition) string {
	if condition.Type == v1alpha1.DeletionBlockedCondition ||
		condition.Status == metav1.ConditionFalse && apimeta.IsStatusConditionTrue(all, v1alpha1.StalledCondition) {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}

// maxNote is the API server's limit on an event's note, in bytes.
const maxNote = 1024

func note(condition metav1.Condition) string {
	text := condition.Type + " is " + string(condition.Status)
	if condition.Message != "" {
		text += ": " + condition.Message
	}
	return shorten(text)
}

// shorten cuts a text to what an event can hold.
func shorten(text string) string {
	if len(text) <= maxNote {
		return text
	}
	return strings.ToValidUTF8(text[:maxNote-len("...")], "") + "..."
}
