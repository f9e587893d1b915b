// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
)

// reportRotation reports the policies that have held up the replacement of the authority for a while.
func (p *planner) reportRotation() {
	state, at := p.certificates.HeldUp()
	if state == "" || !p.Due(at.Sub(p.Now)) {
		apimeta.RemoveStatusCondition(&p.status.Conditions, v1alpha1.RotationBlockedCondition)
		return
	}
	var holding []string
	for _, policy := range p.Policies {
		if !policy.Known && p.certificates.HoldsUp(nil) || policy.Converts && p.certificates.HoldsUp(policy.trusted()) {
			holding = append(holding, policy.Name+policy.why())
		}
	}
	if len(holding) == 0 {
		holding = append(holding, "rulesets are stored whose policies no longer exist")
	}
	says := "CustomResourceDefinitions still trust the previous authority, which is replaced again only when none does: "
	if state == v1alpha1.RotationAddingCA {
		says = "CustomResourceDefinitions do not trust the next authority. Converter pods serve certificates of the previous one until shortly before it expires; " +
			"then these CustomResourceDefinitions refuse them: "
	}
	p.report(v1alpha1.RotationBlockedCondition, gate.Abnormal(v1alpha1.ReasonBlocked, says+gate.FirstOf(holding, mostNamed)))
}

// trusted is caBundle of the policy's CustomResourceDefinition, and not nil.
func (p Policy) trusted() []byte { return append([]byte{}, p.CABundle...) }

// migrating are the reasons of StorageMigrated while a migration runs, which a change of caBundle would
// end.
var migrating = []string{v1alpha1.ReasonMigrating, v1alpha1.ReasonMigrationSuspended, v1alpha1.ReasonForeignStorageMigration}

// why says why a policy may write no caBundle; empty if it is unknown.
func (p Policy) why() string {
	switch {
	case p.Object == nil:
		return " (the policy no longer exists: create it again)"
	case !p.Known:
		return " (not read since the manager started)"
	case p.Object.Spec.Paused:
		return " (spec.paused is true: set it to false)"
	}
	conditions := p.Object.Status.Conditions
	if migrated := apimeta.FindStatusCondition(conditions, v1alpha1.StorageMigratedCondition); migrated != nil && slices.Contains(migrating, migrated.Reason) {
		return fmt.Sprintf(" (%s: see its condition StorageMigrated)", migrated.Reason)
	}
	if stalled := apimeta.FindStatusCondition(conditions, v1alpha1.StalledCondition); stalled != nil && stalled.Status == metav1.ConditionTrue {
		return fmt.Sprintf(" (%s: see its condition Stalled)", stalled.Reason)
	}
	return ""
}
