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

// Others migrate too: Kubernetes' own StorageVersionMigration, and the migrator
// that was there before it. Two at once would do everything twice, and both prune.
// One of another client's is waited for, and proves nothing: it may have pruned
// status.storedVersions after it failed.

// foreignPause is how long no one tells that a foreign migration has ended.
const foreignPause = 10 * time.Second

// MayMigrate reports whether a run of the policy goes on or may be due, so that it
// matters whether another client migrates.
func MayMigrate(policy *v1alpha1.ConversionPolicy) bool {
	migration, last := policy.Spec.Migration, policy.Status.Migration
	running := last != nil && last.State == v1alpha1.MigrationRunning
	answered := migration.Trigger == "" || last != nil && last.Trigger == migration.Trigger
	return migration.Mode != v1alpha1.MigrationNever && (running || !answered || policy.Status.MigrationEvidence == nil)
}

// foreignMigration names the migration of another client that goes on; empty where none does.
func (m *Migration) foreignMigration() string {
	switch {
	case m.ForeignMigration != "":
		return "another migration, " + m.ForeignMigration
	case m.CRD != nil && crds.Condition(m.CRD, observed.StorageMigrating):
		return "another migration, reported in the condition StorageMigrating of the CustomResourceDefinition"
	}
	return ""
}

// noticePruning warns of versions that another client has removed from
// status.storedVersions. It is not undone: who may store in them is not known. It
// is not believed either (gate.go).
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

// pruned reports that it was this policy's own run.
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
