// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/operator/tracing"
)

// report writes the status once, if it changed, and then an event for each condition that changed.
// A conflict is not reported to users: the next reconciliation decides again. All events of the
// controller are emitted in this file.
func (r *ConversionPolicyReconciler) report(
	ctx context.Context, policy *v1alpha1.ConversionPolicy, before v1alpha1.ConversionPolicyStatus, decided plan.Plan, done []step.Step, applyErr error,
) error {
	status := decided.Status
	if errors.As(applyErr, new(storageRestoredError)) {
		return nil // the next manager decides again
	}
	return tracing.Span(ctx, "report", func(ctx context.Context) error {
		for _, s := range done {
			r.emitStepEvent(policy, s)
		}
		recorded := slices.ContainsFunc(done, func(s step.Step) bool { _, drift := s.(step.RecordDrift); return drift })
		if !recorded {
			if applyErr != nil && !apierrors.IsConflict(applyErr) {
				setApplyFailed(&status.Conditions, policy.Generation, applyErr, metav1.NewTime(r.Now()))
			}
			if err := r.writeStatus(ctx, policy, status); err != nil {
				return client.IgnoreNotFound(err)
			}
		}
		if equality.Semantic.DeepEqual(before, status) {
			return nil
		}
		r.emit(policy, plan.Events(before, status))
		for _, s := range decided.Steps {
			if warning, found := s.(step.Warn); found {
				r.emitWarning(policy, warning)
			}
		}
		return nil
	})
}

// writeStatus writes the status if it differs from the one that was read. After an error, the policy
// has the status that was read. Evidence from a record in the cache may be newer than etcd.
func (r *ConversionPolicyReconciler) writeStatus(ctx context.Context, policy *v1alpha1.ConversionPolicy, status v1alpha1.ConversionPolicyStatus) error {
	if equality.Semantic.DeepEqual(policy.Status, status) {
		return nil
	}
	if provesMore(policy.Status, status) {
		if err := r.storage.check(ctx); err != nil {
			return err
		}
	}
	base := policy.DeepCopy()
	policy.Status = status
	err := r.Client.Status().Patch(ctx, policy, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		policy.Status = base.Status
	}
	return err
}

// emit records events on a policy or a fleet, and on the CustomResourceDefinition of a policy if they
// concern its author.
func (r *ConversionPolicyReconciler) emit(object client.Object, list []gate.Event) {
	for _, event := range list {
		kind := corev1.EventTypeNormal
		if event.Warning {
			kind = corev1.EventTypeWarning
		}
		r.Recorder.Eventf(object, nil, kind, event.Reason, event.Action, "%s", truncate(event.Note))
		if event.CRD != "" {
			r.Recorder.Eventf(definition(object.GetName(), event.CRD), object, kind, event.Reason, event.Action, "%s", truncate(event.Note))
		}
	}
}

// driftAction maps the answer to a drift to the reason and the action of its event.
var driftAction = map[v1alpha1.DriftAnswer]struct{ reason, action string }{
	v1alpha1.DriftRepaired:  {v1alpha1.ReasonDrifted, "Repair"},
	v1alpha1.DriftKept:      {v1alpha1.ReasonConversionKept, "Keep"},
	v1alpha1.DriftTolerated: {v1alpha1.ReasonDrifted, "Tolerate"},
	v1alpha1.DriftContested: {v1alpha1.ReasonContested, "Stall"},
}

// reasonVersionsChanged is the reason of the event on a CustomResourceDefinition whose
// spec.versions the operator changed.
const reasonVersionsChanged = "VersionsChanged"

// emitStepEvent records the event of a completed step that no condition reports.
func (r *ConversionPolicyReconciler) emitStepEvent(policy *v1alpha1.ConversionPolicy, s step.Step) {
	switch s := s.(type) {
	case step.EvictPod:
		r.emit(policy, []gate.Event{{Reason: v1alpha1.ReasonPodEvicted, Action: "Evict", Note: s.Note, Warning: true}})
	case step.RecordDrift:
		does := driftAction[s.Drift.Answer]
		r.emit(policy, []gate.Event{{Reason: does.reason, Action: does.action, Note: s.Note, Warning: s.Drift.Answer != v1alpha1.DriftKept, CRD: s.CRD}})
	case step.EditVersions:
		r.Recorder.Eventf(definition(s.Pin.Name, s.Pin.UID), policy, corev1.EventTypeNormal, reasonVersionsChanged, "EditVersions",
			"ConversionPolicy %s: %s", policy.Name, s.Note)
	}
}

// emitOrphanEvent records on the CustomResourceDefinition that its converter has no policy.
func (r *ConversionPolicyReconciler) emitOrphanEvent(crd *apiextensionsv1.CustomResourceDefinition) {
	r.Recorder.Eventf(crd, nil, corev1.EventTypeWarning, v1alpha1.ReasonOrphaned, "Keep",
		"converts through the Service %s/%s, whose ConversionPolicy is gone: it is kept, with its certificate, and does not change any more. "+
			"Create a ConversionPolicy %s, which takes it over; or point spec.conversion elsewhere, and it is deleted",
		r.Settings.Namespace, names.Child(crd.Name), crd.Name)
}

// definition returns a reference to a CustomResourceDefinition for events.
func definition(name string, uid types.UID) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid}}
}

// ownAdmission matches the messages of the operator's own admission policies.
var ownAdmission = regexp.MustCompile(`ValidatingAdmissionPolicy '[^']*conversion-operator\.io[^']*'`)

// RefusedByOwnAdmission reports that an admission policy of the operator itself refused a write. Another attempt
// does not help.
func RefusedByOwnAdmission(err error) bool {
	return err != nil && ownAdmission.MatchString(err.Error())
}

// ownRemedy says what to do about such a refusal.
const ownRemedy = "; this admission policy is part of the operator: install config/rbac/confinement.yaml and config/guard of the version that runs, " +
	"and exempt what the operator writes from other admission that changes it"

// setApplyFailed sets the conditions of a policy or a fleet for the error of a step.
func setApplyFailed(conditions *[]metav1.Condition, generation int64, err error, now metav1.Time) {
	message, again, stalled := truncate(err.Error()), metav1.ConditionTrue, metav1.ConditionFalse
	if RefusedByOwnAdmission(err) {
		message, again, stalled = gate.CutTo(err.Error(), maxNote-len(ownRemedy))+ownRemedy, stalled, again
	}
	for kind, value := range map[string]metav1.ConditionStatus{
		v1alpha1.ReadyCondition: metav1.ConditionFalse, v1alpha1.ReconcilingCondition: again, v1alpha1.StalledCondition: stalled,
	} {
		apimeta.SetStatusCondition(conditions, metav1.Condition{
			Type: kind, Status: value, Reason: v1alpha1.ReasonApplyFailed, Message: message,
			ObservedGeneration: generation, LastTransitionTime: now,
		})
	}
}

// emitWarning records a warning on both the policy and the CustomResourceDefinition. The status
// already contains it: a manager that decided by a stale status gets a conflict there, and emits
// nothing.
func (r *ConversionPolicyReconciler) emitWarning(policy *v1alpha1.ConversionPolicy, s step.Warn) {
	r.Recorder.Eventf(policy, s.CRD, corev1.EventTypeWarning, s.Reason, "Warn", "%s", truncate(s.Note))
	r.Recorder.Eventf(s.CRD, policy, corev1.EventTypeWarning, s.Reason, "Warn", "%s", truncate(s.Note))
}

// maxNote is the API server's limit for the note of an event, in bytes.
const maxNote = 1024

// truncate cuts a text to the limit of an event.
func truncate(text string) string { return gate.CutTo(text, maxNote) }

// recordDrift writes the policy's status before the CustomResourceDefinition is changed, so that
// every repair is counted even if the manager dies in between or decided by a stale status. It
// replaces the status write of this reconciliation: the next one reports the error of a later
// step.
func (r *ConversionPolicyReconciler) recordDrift(
	ctx context.Context, policy *v1alpha1.ConversionPolicy, s step.RecordDrift, status v1alpha1.ConversionPolicyStatus,
) error {
	if err := r.writeStatus(ctx, policy, status); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Another client wrote spec.conversion", "manager", s.Drift.LastManager, "answer", s.Drift.Answer)
	return nil
}

// provesMore reports that the status has new migration evidence, or the evidence for another generation of
// the CustomResourceDefinition.
func provesMore(before, after v1alpha1.ConversionPolicyStatus) bool {
	return !equality.Semantic.DeepEqual(before.MigrationEvidence, after.MigrationEvidence) ||
		after.MigrationEvidence != nil && !equality.Semantic.DeepEqual(before.CRD, after.CRD)
}
