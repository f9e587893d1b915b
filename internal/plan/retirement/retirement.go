// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package retirement

import (
	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/converter"
	"github.com/conversion-operator/conversion-operator/internal/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/plan/migration"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
)

// Retirement of a policy's versions.
type Retirement struct {
	observed.Cluster
	gate.Work
	// Status is the retirement's part of the policy's.
	Status Status

	// Clears tells that managedFields of objects are being cleaned.
	Clears bool

	converter *converter.Converter
	migration *migration.Migration
	// oversized are the objects that cannot be read as a whole at a version.
	oversized []v1alpha1.OversizedObject
	// takenBack is what another client took back in spec.versions since the last look.
	takenBack []string
}

// Status is the retirement's part of a policy's status.
type Status struct {
	Retirement    []v1alpha1.RetirementStatus
	Promotion     *v1alpha1.PromotionStatus
	VersionsDrift *v1alpha1.DriftStatus
	VersionsEdit  *v1alpha1.VersionsEdit
}

// Look brings what the status remembers of versions up to date, and counts what a client
// else took back.
func Look(converts *converter.Converter, migrates *migration.Migration, oversized []v1alpha1.OversizedObject) *Retirement {
	status := converts.Policy.Status.DeepCopy()
	r := &Retirement{Cluster: converts.Cluster, converter: converts, migration: migrates, oversized: oversized,
		Status: Status{Retirement: status.Retirement, Promotion: status.Promotion, VersionsDrift: status.VersionsDrift}}
	r.noteVersions()
	return r
}

// Removed are the versions that were removed by the policy, or while it wanted that.
func (r *Retirement) Removed() []string {
	var removed []string
	for i := range r.Status.Retirement {
		if record := &r.Status.Retirement[i]; record.RemovedTime != nil {
			removed = append(removed, record.Version)
		}
	}
	return removed
}
