// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/crds"
	"github.com/conversion-operator/conversion-operator/internal/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
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
