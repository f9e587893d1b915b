// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
	"github.com/conversion-operator/conversion-operator/internal/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
)

// Evidence returns the migration evidence of the status if it still holds, and nil
// otherwise. It holds while the CustomResourceDefinition keeps its storage version and
// changes one generation at a time: moving the storage version away and back takes two.
func Evidence(cluster observed.Cluster) *v1alpha1.MigrationEvidence {
	crd := cluster.CRD
	if crd == nil {
		return nil
	}
	storage := crds.StorageVersion(crd)
	if evidence := cluster.Policy.Status.MigrationEvidence.DeepCopy(); evidence != nil {
		changes := crd.Generation - evidence.CRDGeneration
		if evidence.Source != v1alpha1.EvidenceMigration && olderObjects(cluster) {
			return nil
		}
		if evidence.CRDUID == crd.UID && evidence.StorageVersion == storage && changes >= 0 && changes <= 1 && crds.StoredOnlyIn(crd, storage) {
			evidence.CRDGeneration = crd.Generation
			return evidence
		}
	}
	// The storage version of a definition whose spec never changed is the only one that was ever
	// stored, unless there are objects from before the definition.
	switch {
	case olderObjects(cluster):
		return nil
	case crd.Generation != 1 || !crds.StoredOnlyIn(crd, storage):
		return nil
	case len(crd.Spec.Versions) == 1:
		return newEvidence(cluster, v1alpha1.EvidenceSingleVersion)
	}
	return newEvidence(cluster, v1alpha1.EvidenceUnchanged)
}

// olderObjects reports that objects are older than the CustomResourceDefinition: it was removed without
// them, as when its finalizer was removed by force, and created again.
func olderObjects(cluster observed.Cluster) bool {
	window := cluster.Policy.Status.UnconvertedWindow
	return window != nil && window.OlderObjects > 0 && !cluster.Recreated()
}

// newEvidence is evidence for the current CustomResourceDefinition.
func newEvidence(cluster observed.Cluster, source v1alpha1.EvidenceSource) *v1alpha1.MigrationEvidence {
	return &v1alpha1.MigrationEvidence{
		CRDUID: cluster.CRD.UID, CRDGeneration: cluster.CRD.Generation, StorageVersion: crds.StorageVersion(cluster.CRD),
		Source: source, Time: metav1.NewTime(cluster.Now),
	}
}

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
