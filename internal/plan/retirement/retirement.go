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

// Retirement decides about the versions of a CustomResourceDefinition.
type Retirement struct {
	observed.Cluster
	// work that was decided and not handed out yet.
	work gate.Work
	// Status is the retirement's part of the status of the policy.
	Status Status

	// CleansManagedFields tells that managedFields of objects are being cleaned.
	CleansManagedFields bool

	converter *converter.Converter
	migration *migration.Migration
	// oversized are the objects that do not fit at a version.
	oversized []v1alpha1.OversizedObject
	// reverted are this policy's changes of spec.versions that another client has reverted
	// since the last reconciliation, as sentences without their subject.
	reverted []string
}

// Status is the retirement's part of a policy's status.
type Status struct {
	Retirement    []v1alpha1.RetirementStatus
	Promotion     *v1alpha1.PromotionStatus
	VersionsDrift *v1alpha1.DriftStatus
	VersionsEdit  *v1alpha1.VersionsEdit
}

// Gather brings the records of the status up to date, and counts changes that another
// client reverted.
func Gather(converts *converter.Converter, migrates *migration.Migration, oversized []v1alpha1.OversizedObject) *Retirement {
	status := converts.Policy.Status.DeepCopy()
	r := &Retirement{Cluster: converts.Cluster, converter: converts, migration: migrates, oversized: oversized,
		Status: Status{Retirement: status.Retirement, Promotion: status.Promotion, VersionsDrift: status.VersionsDrift}}
	r.noteVersions()
	return r
}

// Upkeep reports changes of spec.versions that another client reverted. It waits for no gate.
func (r *Retirement) Upkeep() gate.Work { return r.work.Take() }

// Removed are the versions that the policy, or another client meanwhile, has removed.
func (r *Retirement) Removed() []string {
	var removed []string
	for i := range r.Status.Retirement {
		if record := &r.Status.Retirement[i]; record.RemovedTime != nil {
			removed = append(removed, record.Version)
		}
	}
	return removed
}
