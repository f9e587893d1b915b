// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"fmt"
	"time"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
	"github.com/conversion-operator/conversion-operator/internal/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
)

// Other clients migrate, too: the StorageVersionMigration of Kubernetes, and its predecessor.
// Two migrations at the same time would do the work twice, and both prune. The operator waits
// for one of another client, and does not accept it as evidence: it may have pruned
// status.storedVersions after it failed.

// foreignPause is the time between two checks of a foreign migration. No event reports its end.
const foreignPause = 10 * time.Second

// MayMigrate reports that a run of the policy is under way or may be due, so that a migration of
// another client matters.
func MayMigrate(policy *v1alpha1.ConversionPolicy) bool {
	migration, last := policy.Spec.Migration, policy.Status.Migration
	running := last != nil && last.State == v1alpha1.MigrationRunning
	answered := migration.Trigger == "" || last != nil && last.Trigger == migration.Trigger
	return migration.Mode != v1alpha1.MigrationNever && (running || !answered || policy.Status.MigrationEvidence == nil)
}

// foreignMigration names a migration of another client that is under way; empty if there is none.
func (m *Migration) foreignMigration() string {
	switch {
	case m.ForeignMigration != "":
		return "another migration, " + m.ForeignMigration
	case m.CRD != nil && crds.Condition(m.CRD, observed.StorageMigrating):
		return "another migration, reported in the condition StorageMigrating of the CustomResourceDefinition"
	}
	return ""
}

// noticePruning warns of versions that another client removed from status.storedVersions. The
// operator neither reverts that nor accepts it as evidence (gate.go).
func (m *Migration) noticePruning() {
	before := m.Policy.Status.CRD
	if m.CRD == nil || before == nil || before.UID != m.CRD.UID || m.pruned() {
		return
	}
	if missing := missingFrom(before, m.CRDStatus()); len(missing) > 0 {
		m.work.Do(step.Warn{CRD: m.CRD, Reason: v1alpha1.ReasonPrunedByOthers, Note: fmt.Sprintf(
			"%s removed %s from status.storedVersions of the CustomResourceDefinition, and no migration of policy %s has proven that no object is stored there",
			m.whoPruned(), gate.FirstOf(missing, gate.MaxFields), m.Policy.Name)})
	}
}

// pruned reports that a run of this policy pruned status.storedVersions.
func (m *Migration) pruned() bool {
	last := m.UnderWay()
	if last == nil {
		return false
	}
	record := m.run(last.Run).Record
	return record != nil && record.Complete()
}

func (m *Migration) whoPruned() string {
	if writer := crds.StoredVersionsWriter(m.CRD); writer != "" {
		return gate.FieldManager(writer)
	}
	return "an unknown field manager"
}
