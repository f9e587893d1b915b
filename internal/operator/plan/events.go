// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/migration"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/workload"
)

// Events returns the events between two states of a policy: one for each condition whose
// status or reason changed, and those of its migration. They follow from the two states
// alone, so that a restart of the manager repeats none.
func Events(before, after v1alpha1.ConversionPolicyStatus) []gate.Event {
	return slices.Concat(conditionEvents(before.Conditions, after), gate.Recovered(recoveries, before.Conditions, after.Conditions), migration.Events(before, after))
}

// recoveries are the events for the end of conditions that exist only during a problem.
var recoveries = []gate.Recovery{
	{Condition: v1alpha1.ConversionsFailingCondition, Note: "conversions recovered: no conversion failed recently"},
	{Condition: v1alpha1.SamplesFailingCondition, Note: "samples recovered: live objects come back unchanged, or sampling ended"},
	{Condition: v1alpha1.OversizedObjectsCondition, Note: "oversized objects resolved: every known object fits at every version"},
	workload.RedundancyRecovery,
	{Condition: v1alpha1.BootstrapDependencyCondition, Note: "bootstrap dependency resolved: converter pods no longer depend on objects that they convert"},
}

func conditionEvents(before []metav1.Condition, after v1alpha1.ConversionPolicyStatus) []gate.Event {
	var events []gate.Event
	for _, condition := range after.Conditions {
		old := apimeta.FindStatusCondition(before, condition.Type)
		if !gate.Changed(old, condition) || repeats(condition, after.Conditions) || passes(old, condition) {
			continue
		}
		warning := isWarning(condition, after.Conditions)
		event := gate.Event{Reason: condition.Reason, Action: condition.Type, Note: gate.Note(condition), Warning: warning}
		if after.CRD != nil && (warning || slices.Contains(onCRD, condition.Type)) {
			event.CRD = after.CRD.UID
		}
		events = append(events, event)
	}
	return events
}

// onCRD are the conditions of the steps that change the CustomResourceDefinition. Their events
// are emitted for it, too, as are all warnings.
var onCRD = []string{v1alpha1.ConversionConfiguredCondition, v1alpha1.StorageMigratedCondition, v1alpha1.VersionsRetiredCondition}

// repeats reports that a condition has no event of its own. The summaries repeat the gate that
// stopped, and the later gates only wait for it.
func repeats(condition metav1.Condition, all []metav1.Condition) bool {
	switch condition.Type {
	case v1alpha1.ReconcilingCondition, v1alpha1.StalledCondition:
		return true
	case v1alpha1.ReadyCondition:
		return slices.ContainsFunc(v1alpha1.Gates, func(of string) bool {
			found := apimeta.FindStatusCondition(all, of)
			return found != nil && found.Reason == condition.Reason
		})
	}
	return slices.Contains(withoutEvent, condition.Reason)
}

// passes reports that a condition is on its way to True, and has not left it, or gets there without a
// problem before: then the event is that of Ready, or of what was changed. Hundreds of policies may be
// activated at once, and events are half of their writes.
func passes(old *metav1.Condition, condition metav1.Condition) bool {
	switch {
	case old != nil && old.Status == metav1.ConditionTrue:
		return false
	case condition.Status != metav1.ConditionTrue:
		return slices.Contains(passing, condition.Reason)
	}
	smoothly := old == nil || old.Reason == v1alpha1.ReasonNotEvaluated || slices.Contains(passing, old.Reason)
	return smoothly && slices.Contains(v1alpha1.Gates, condition.Type) && !slices.Contains(onCRD, condition.Type)
}

// passing are the reasons of underWay that the operator leaves by itself within seconds.
var passing = []string{
	v1alpha1.ReasonIssuing, v1alpha1.ReasonRollingOut, v1alpha1.ReasonProbing, v1alpha1.ReasonConfiguring,
}

// withoutEvent are the reasons of conditions that have no event: there is nothing to do, or
// drift (RecordDrift) and migration runs have events of their own, with more details.
var withoutEvent = []string{
	v1alpha1.ReasonNotEvaluated, v1alpha1.ReasonNotNeeded, v1alpha1.ReasonNotRequested,
	v1alpha1.ReasonDrifted, v1alpha1.ReasonContested,
	v1alpha1.ReasonMigrating, v1alpha1.ReasonMigrationSuspended, v1alpha1.ReasonMigrated,
	v1alpha1.ReasonObjectsFailed, v1alpha1.ReasonMigrationFailed,
}

// isWarning reports that a condition needs the attention of a user.
func isWarning(condition metav1.Condition, all []metav1.Condition) bool {
	return slices.Contains(v1alpha1.Abnormal, condition.Type) || condition.Status == metav1.ConditionFalse &&
		(apimeta.IsStatusConditionTrue(all, v1alpha1.StalledCondition) || !slices.Contains(underWay, condition.Reason))
}

// underWay are the reasons of conditions that become True without help.
var underWay = append([]string{
	v1alpha1.ReasonPromoting, v1alpha1.ReasonForeignStorageMigration,
	v1alpha1.ReasonRetiring, v1alpha1.ReasonSoaking, v1alpha1.ReasonBlocked,
	v1alpha1.ReasonPaused, v1alpha1.ReasonDeleting,
}, passing...)
