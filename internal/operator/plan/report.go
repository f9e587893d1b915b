// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
)

// plan returns all steps, and the status with the parts of all packages.
func (p *planner) plan() Plan {
	status := &p.status
	if !p.IsDeleted() {
		p.forget(v1alpha1.DeletionBlockedCondition)
	}
	status.CRD = p.CRDStatus()
	status.ActivatedCRD, status.ActiveRevisions = p.converter.Status.ActiveCRD, p.converter.Status.Active
	status.OperatorUsername = p.Settings.Username
	status.Revision, status.Webhook = p.converter.Status.Revision, p.converter.Status.Webhook
	status.Certificate = p.certificates.Status()
	status.Drift, status.UnconvertedWindow = p.activation.Status.Drift, p.activation.Status.UnconvertedWindow
	status.Verification = p.health.Status.Verification
	status.ConversionFailures, status.OversizedObjects = p.health.Status.ConversionFailures, p.health.Status.OversizedObjects
	status.Migration, status.MigrationEvidence, status.PreservedData = p.migration.Status.Migration, p.migration.Status.MigrationEvidence, p.migration.Status.PreservedData
	status.Retirement, status.PromotedVersion = p.retirement.Status.Retirement, p.retirement.Status.PromotedVersion
	status.VersionsDrift, status.VersionsEdit = p.retirement.Status.VersionsDrift, p.retirement.Status.VersionsEdit
	status.Versions, status.Removable = p.retirement.Versions()
	status.ConversionRemovedTime = p.deletion.Released
	return Plan{Steps: p.Steps, Status: *status, RecheckAfter: p.RecheckAfter}
}

// reportHealth sets the conditions of problems after the activation.
func (p *planner) reportHealth() {
	proven := apimeta.IsStatusConditionTrue(p.status.Conditions, v1alpha1.ConversionVerifiedCondition) &&
		apimeta.IsStatusConditionTrue(p.status.Conditions, v1alpha1.ConversionConfiguredCondition)
	p.Add(p.health.Report(proven && !p.writesCRD() && p.migration.UnderWay() == nil))
	for _, condition := range v1alpha1.Abnormal {
		switch outcome, decided := p.health.Status.Conditions[condition]; {
		case decided && outcome.Reason != "":
			p.report(condition, outcome)
		case decided:
			p.forget(condition)
		}
	}
}

func (p *planner) report(condition string, o gate.Outcome) {
	apimeta.SetStatusCondition(&p.status.Conditions, o.Condition(condition, p.Policy.Generation, p.Now))
}

func (p *planner) forget(condition string) {
	apimeta.RemoveStatusCondition(&p.status.Conditions, condition)
}

// reportRest reports that the gates behind the one that stopped were not evaluated.
func (p *planner) reportRest(reported map[string]bool, stopped string) {
	for _, condition := range v1alpha1.Gates {
		if !reported[condition] {
			p.report(condition, gate.Outcome{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotEvaluated,
				Message: "waits for " + stopped})
		}
	}
}

// summarize sets Ready, Reconciling and Stalled as kstatus reads them: at most
// one of the last two is True, and both are False once Ready is True.
func (p *planner) summarize(last gate.Outcome) {
	ready := gate.Passed(v1alpha1.ReasonSucceeded, p.success())
	if valid := apimeta.FindStatusCondition(p.status.Conditions, v1alpha1.RulesValidCondition); valid != nil &&
		valid.Reason == v1alpha1.ReasonVersionNotInCRD {
		ready.Reason, ready.Message = v1alpha1.ReasonWaitingForVersion, valid.Message
	}
	migrated := apimeta.FindStatusCondition(p.status.Conditions, v1alpha1.StorageMigratedCondition)
	switch {
	case last.Status == metav1.ConditionFalse && !last.Stop:
		ready.Message += "; " + last.Message
	case migrated != nil && migrated.Reason == v1alpha1.ReasonNotRequested && p.Policy.Spec.Migration.Mode != v1alpha1.MigrationNever:
		ready.Message += "; " + migrated.Message // so that no one forgets it
	}
	if last.Stop {
		ready = gate.Outcome{Status: metav1.ConditionFalse, Reason: last.Reason, Message: last.Message}
	}
	paused := last.Reason == v1alpha1.ReasonPaused
	if paused {
		ready.Status = metav1.ConditionUnknown
	}
	p.report(v1alpha1.ReadyCondition, ready)
	p.report(v1alpha1.ReconcilingCondition, gate.Flag(last.Stop && !last.Stalled && !paused, ready))
	p.report(v1alpha1.StalledCondition, gate.Flag(last.Stalled, ready))
}

func (p *planner) success() string {
	crd := p.CRDStatus()
	if crd == nil {
		return ""
	}
	if p.None() {
		return "nothing needs to be converted; objects are written at " + crd.StorageVersion + p.converter.PreferredLacks()
	}
	return "conversion is active and verified; objects are written at " + crd.StorageVersion + p.converter.Unneeded(p.retirement.Removed()) + p.converter.PreferredLacks()
}

// OnlyProgress reports that two states of a policy are both on the way to Ready, and differ only in how
// far the policy has come. Such a status may be written later, or never: Ready stays False, and nothing
// in the difference is needed for a decision. The results of checks are also in the memory of the
// manager, and another manager repeats the checks.
func OnlyProgress(before, after v1alpha1.ConversionPolicyStatus) bool {
	return onTheWay(before) && onTheWay(after) && equality.Semantic.DeepEqual(withoutProgress(before), withoutProgress(after))
}

func onTheWay(status v1alpha1.ConversionPolicyStatus) bool {
	ready := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ReadyCondition)
	return ready != nil && ready.Status == metav1.ConditionFalse && slices.Contains(passing, ready.Reason)
}

// withoutProgress has what must be written at once. A condition of a problem is part of it.
func withoutProgress(status v1alpha1.ConversionPolicyStatus) v1alpha1.ConversionPolicyStatus {
	status.Verification, status.Webhook, status.PreservedData = nil, nil, nil
	status.Versions, status.Removable = nil, ""
	status.Conditions = slices.DeleteFunc(slices.Clone(status.Conditions), func(condition metav1.Condition) bool {
		return !slices.Contains(v1alpha1.Abnormal, condition.Type)
	})
	return status
}
