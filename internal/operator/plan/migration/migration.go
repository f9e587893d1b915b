// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// Input is the observed cluster, with decisions of other packages.
type Input struct {
	observed.Cluster
	// InForce tells that the CustomResourceDefinition converts as the policy wants or wanted,
	// and Drifted that another client changed that.
	InForce, Drifted bool
	// InCharge tells that the active converter is the desired one.
	InCharge bool
	// AnswersWrongly tells that an endpoint that serves traffic answers incorrectly.
	AnswersWrongly bool
	// RefusesTruncated tells that API servers refuse writes of truncated objects.
	RefusesTruncated bool
	// Evidence of an earlier migration, as far as it still holds.
	Evidence *v1alpha1.MigrationEvidence
	// Wanted is the identity of the desired converter. Ruleset is the same if the policy has
	// rules, and otherwise empty.
	Wanted, Ruleset string
	// RulesetConfigMap is the name of the ConfigMap that has the ruleset.
	RulesetConfigMap string
}

// Migration decides about the migration of stored objects.
type Migration struct {
	Input
	// work that was decided and not handed out yet.
	work gate.Work
	// Status is the migration's part of the status of the policy.
	Status Status

	places *conversion.Places
}

// Status is the migration's part of a policy's status.
type Status struct {
	Migration         *v1alpha1.MigrationStatus
	MigrationEvidence *v1alpha1.MigrationEvidence
	PreservedData     *v1alpha1.PreservedDataStatus
}

// Gather reads the status, as far as it still holds, and what was counted since.
func Gather(in Input) *Migration {
	status := &in.Policy.Status
	m := &Migration{Input: in, Status: Status{
		Migration: status.Migration.DeepCopy(), MigrationEvidence: in.Evidence, PreservedData: status.PreservedData.DeepCopy()}}
	m.notePreserved()
	return m
}

// Upkeep stops the runs that must not continue, and warns if another client has pruned
// status.storedVersions. It waits for no gate.
func (m *Migration) Upkeep() gate.Work {
	m.noticePruning()
	m.guard()
	return m.work.Take()
}

// Suspend stops all runs. The status of the one that is under way says why.
func (m *Migration) Suspend(why string) gate.Work {
	m.stall(why)
	return m.SuspendAll()
}

// SuspendAll stops all runs.
func (m *Migration) SuspendAll() gate.Work {
	for _, run := range m.Runs {
		m.suspend(run)
	}
	return m.work.Take()
}

// Places says which preserved values have a field in the storage version; nil if unknown.
func (m *Migration) Places() *conversion.Places {
	if m.places == nil && m.Rules.Ruleset != nil && m.CRD != nil {
		m.places, _ = conversion.NewPlaces(m.Rules.Ruleset, crds.StorageVersion(m.CRD)) // nil with an error
	}
	return m.places
}

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
		known := cluster.Policy.Status.CRD // of the same uid: other evidence is forgotten
		changes := crd.Generation - known.Generation
		if evidence.Source != v1alpha1.EvidenceMigration && olderObjects(cluster) {
			return nil
		}
		if known.StorageVersion == storage && changes >= 0 && changes <= 1 && crds.StoredOnlyIn(crd, storage) {
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
	return window != nil && window.OlderObjects > 0
}

// newEvidence is evidence for the current CustomResourceDefinition.
func newEvidence(cluster observed.Cluster, source v1alpha1.EvidenceSource) *v1alpha1.MigrationEvidence {
	return &v1alpha1.MigrationEvidence{Source: source, Time: metav1.NewTime(cluster.Now)}
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
