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

// Input is what a migration depends on besides what was observed.
type Input struct {
	observed.Cluster
	// InForce tells that the CustomResourceDefinition converts as the policy wants it, or
	// wanted it before; Drifted that another client changed that.
	InForce, Drifted bool
	// InCharge tells that API servers call the converter that is wanted.
	InCharge bool
	// AnswersWrongly tells that a converter that API servers call answers, and wrongly.
	AnswersWrongly bool
	// RefusesTruncated tells that API servers refuse truncated forms, which a migration reads.
	RefusesTruncated bool
	// Wanted is the identity of the wanted converter, and Ruleset the same where that is
	// compiled rules.
	Wanted, Ruleset string
}

// Migration of a policy's objects.
type Migration struct {
	Input
	gate.Work
	// Status is the migration's part of the policy's.
	Status Status

	places *conversion.Places
}

// Status is the migration's part of a policy's status.
type Status struct {
	Migration         *v1alpha1.MigrationStatus
	MigrationEvidence *v1alpha1.MigrationEvidence
	PreservedData     *v1alpha1.PreservedDataStatus
}

// Look takes over what the status remembers, as far as it still holds, and what was
// counted since.
func Look(in Input) *Migration {
	status := &in.Policy.Status
	m := &Migration{Input: in, Status: Status{
		Migration: status.Migration.DeepCopy(), MigrationEvidence: status.MigrationEvidence.DeepCopy(), PreservedData: status.PreservedData.DeepCopy()}}
	m.judgeEvidence()
	m.notePreserved()
	return m
}

// Places tells what has a place in the storage version, nil where that is not known.
func (m *Migration) Places() *conversion.Places {
	if m.places == nil && m.Rules.Ruleset != nil && m.CRD != nil {
		m.places, _ = conversion.NewPlaces(m.Rules.Ruleset, crds.StorageVersion(m.CRD)) // nil with an error
	}
	return m.places
}
