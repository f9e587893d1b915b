// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package retirement

import (
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/converter"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/migration"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
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
	Retirement      []v1alpha1.RetirementStatus
	PromotedVersion string
	VersionsDrift   *v1alpha1.DriftStatus
	VersionsEdit    string
}

// Gather brings the records of the status up to date, and counts changes that another
// client reverted.
func Gather(converts *converter.Converter, migrates *migration.Migration, oversized []v1alpha1.OversizedObject) *Retirement {
	status := converts.Policy.Status.DeepCopy()
	r := &Retirement{Cluster: converts.Cluster, converter: converts, migration: migrates, oversized: oversized,
		Status: Status{Retirement: status.Retirement, PromotedVersion: status.PromotedVersion, VersionsDrift: status.VersionsDrift}}
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

// The CustomResourceDefinition shows how far the retirement of a version is, but not since when.
// status.retirement records the time at which each step was first observed, no matter which
// client took it. A manager that dies between a write and its report loses only that time.

// defaultAfter is the default of spec.retirement[].after.
const defaultAfter = 168 * time.Hour

// record is the record of a version; nil if the version never existed, or is not being retired.
func (r *Retirement) record(version string) *v1alpha1.RetirementStatus {
	for i := range r.Status.Retirement {
		if r.Status.Retirement[i].Version == version {
			return &r.Status.Retirement[i]
		}
	}
	return nil
}

// retirement is the entry of a version in the policy, or nil.
func (r *Retirement) retirement(version string) *v1alpha1.Retirement {
	for i := range r.Policy.Spec.Retirement {
		if string(r.Policy.Spec.Retirement[i].Version) == version {
			return &r.Policy.Spec.Retirement[i]
		}
	}
	return nil
}

// reaches reports that an action includes another one.
func reaches(action, step v1alpha1.RetirementAction) bool {
	order := []v1alpha1.RetirementAction{
		v1alpha1.RetirementKeep, v1alpha1.RetirementDeprecate, v1alpha1.RetirementUnserve, v1alpha1.RetirementRemove,
	}
	return slices.Index(order, action) >= slices.Index(order, step)
}

// After is how long each step of a retirement waits.
func After(entry *v1alpha1.Retirement) time.Duration {
	if entry == nil || entry.After == nil {
		return defaultAfter
	}
	return entry.After.Duration
}

// soak is how long a version is unserved before the next step, and the propagation delay at
// least: until then, an API server may still serve it.
func (r *Retirement) soak(version string) time.Duration {
	return max(After(r.retirement(version)), r.Settings.PropagationDelay)
}

// noteRetirement updates the records.
func (r *Retirement) noteRetirement() {
	r.Status.Retirement = slices.DeleteFunc(r.Status.Retirement, func(record v1alpha1.RetirementStatus) bool {
		return r.CRD == nil || r.retirement(record.Version) == nil
	})
	if r.CRD == nil {
		return
	}
	for i := range r.Policy.Spec.Retirement {
		entry := &r.Policy.Spec.Retirement[i]
		name := string(entry.Version)
		version, _ := crds.Version(r.CRD, name)
		if r.record(name) == nil && version != nil {
			r.Status.Retirement = append(r.Status.Retirement, r.newRecord(version))
		}
		if record := r.record(name); record != nil {
			r.note(entry, record, version)
			r.countRequests(record)
		}
	}
}

// newRecord creates the record of a version. If the version is unserved already, this policy did
// not do that, no matter who wrote spec.versions last.
func (r *Retirement) newRecord(version *apiextensionsv1.CustomResourceDefinitionVersion) v1alpha1.RetirementStatus {
	record := v1alpha1.RetirementStatus{Version: version.Name}
	if !version.Served {
		record.UnservedTime = r.Second()
	}
	return record
}

// note records the time of each step of a version, and removes it if the step was reverted. If
// the policy wants that step, another client has reverted it.
func (r *Retirement) note(entry *v1alpha1.Retirement, record *v1alpha1.RetirementStatus, version *apiextensionsv1.CustomResourceDefinitionVersion) {
	if version == nil {
		if record.RemovedTime == nil {
			record.RemovedTime = r.Second()
		}
		return
	}
	if record.RemovedTime != nil {
		*record = v1alpha1.RetirementStatus{Version: record.Version, Requests: record.Requests, LastRequested: record.LastRequested}
		r.noteReverted(entry, v1alpha1.RetirementRemove, "added "+record.Version+" again")
	}
	switch {
	case version.Deprecated && record.DeprecatedTime == nil:
		r.driftEnded()
		record.DeprecatedTime = r.Second()
	case !version.Deprecated && record.DeprecatedTime != nil:
		record.DeprecatedTime = nil
		r.noteReverted(entry, v1alpha1.RetirementDeprecate, "made "+record.Version+" a version that is not deprecated")
	}
	switch {
	case !version.Served && record.UnservedTime == nil:
		r.driftEnded()
		record.UnservedTime, record.UnservedHere = r.Second(), crds.VersionsAreBy(r.CRD, names.ManagedBy)
	case version.Served && record.UnservedTime != nil:
		record.UnservedTime, record.UnservedHere, record.CleanedTime = nil, false, nil
		if version.Deprecated {
			record.DeprecatedTime = r.Second() // clients may request it again, so the wait begins again
		}
		r.noteReverted(entry, v1alpha1.RetirementUnserve, "served "+record.Version+" again")
	}
}

func (r *Retirement) noteReverted(entry *v1alpha1.Retirement, step v1alpha1.RetirementAction, what string) {
	if reaches(entry.Action, step) {
		r.reverted = append(r.reverted, what)
	}
}
