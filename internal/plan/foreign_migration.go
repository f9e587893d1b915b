// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
)

// Others migrate too: Kubernetes' own StorageVersionMigration, and the migrator
// that was there before it. Two at once would do everything twice, and both prune.
// One of somebody else's is waited for, and proves nothing: it may have pruned
// status.storedVersions after it failed.

// foreignPause is how long nobody tells that a foreign migration has ended.
const foreignPause = 10 * time.Second

// MayMigrate reports whether a run of the policy goes on or may be due, so that it
// matters whether somebody else migrates.
func MayMigrate(policy *v1alpha1.ConversionPolicy) bool {
	migration, last := policy.Spec.Migration, policy.Status.Migration
	running := last != nil && last.State == v1alpha1.MigrationRunning
	answered := migration.Trigger == "" || last != nil && last.Trigger == migration.Trigger
	return migration.Mode != v1alpha1.MigrationNever && (running || !answered || policy.Status.Evidence == nil)
}

// foreignMigration names the migration of somebody else that goes on; empty where none does.
func (s *state) foreignMigration() string {
	switch {
	case s.ForeignMigration != "":
		return "somebody else's migration " + s.ForeignMigration
	case s.CRD != nil && crds.Condition(s.CRD, storageMigrating):
		return "somebody else's migration, which the condition StorageMigrating of the CustomResourceDefinition tells of"
	}
	return ""
}

// noticePruning warns of versions that somebody else has removed from
// status.storedVersions. It is not undone: who may store in them is not known. It
// is not believed either (migrated.go).
func (s *state) noticePruning() {
	before := s.Policy.Status.CRD
	if s.CRD == nil || before == nil || before.UID != s.CRD.UID || s.pruned() {
		return
	}
	if missing := missingFrom(before, s.plan.Status.CRD); len(missing) > 0 {
		s.do(Warn{s.CRD, v1alpha1.ReasonPrunedByOthers, fmt.Sprintf(
			"%s removed %s from status.storedVersions of the CustomResourceDefinition, and no migration of policy %s has proven that no object is stored there",
			s.whoPruned(), firstOf(missing, maxFields), s.Policy.Name)})
	}
}

// pruned reports that it was this policy's own run.
func (s *state) pruned() bool {
	last := s.underWay()
	if last == nil {
		return false
	}
	progress := s.run(last.Run).Progress
	return progress != nil && progress.Complete
}

func (s *state) whoPruned() string {
	if writer := crds.StoredVersionsWriter(s.CRD); writer != "" {
		return fieldManager(writer)
	}
	return "somebody who left no trace in metadata.managedFields"
}
