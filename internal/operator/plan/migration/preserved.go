// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
)

// Objects preserve, in annotations, values that the storage version has no field for. Migration
// runs, samples and retirements count them, and status.preservedData has the best count: one of
// all objects is better than one of some. When a change of rules or schemas adds a field for
// preserved values, a run moves them there (gate.go). While objects have preserved values of a
// version, it is not removed (package retirement).

// maxPreservedFields is the maximum number of fields of a version in the status.
const maxPreservedFields = 20

// notePreserved records new counts in the status, and updates what follows from them.
func (m *Migration) notePreserved() {
	if m.CRD == nil || !m.Rulesets() {
		m.Status.PreservedData = nil
		return
	}
	m.takeCheck(m.Samples)
	m.takeCheck(m.Resampled)
	m.takeCheck(m.Cleared)
}

func (m *Migration) takeCheck(check *observed.BackgroundCheck) {
	if check != nil && !check.Running && check.Held != nil && check.Held.CRD == m.CRD.UID {
		m.takeCount(count(check.Held))
	}
}

// noteRunCount records the count of a run that has ended.
func (m *Migration) noteRunCount(run observed.Run) {
	record := run.Record
	if record == nil || record.Ruleset == "" {
		return
	}
	held := &observed.Held{Ruleset: record.Ruleset, Since: record.CountedFrom().Time, All: record.Complete()}
	if record.Preserved != nil {
		held.Holdings = *record.Preserved
	}
	m.takeCount(count(held))
}

// takeCount records a count if it says more than the recorded one. Of two counts in the same
// second, the precision of a status, the one that is recorded last says more.
func (m *Migration) takeCount(counted *v1alpha1.PreservedDataStatus) {
	known := m.Status.PreservedData
	if known != nil && !saysMore(counted, known) {
		return
	}
	m.Status.PreservedData = counted
}

// saysMore reports that one count says more than another. Of two complete counts, or of two
// incomplete ones, the later one does. An incomplete count says more than a complete one if it
// is later and has a field that the complete one lacks.
func saysMore(counted, known *v1alpha1.PreservedDataStatus) bool {
	later := !counted.Time.Before(&known.Time)
	switch {
	case counted.Complete == known.Complete:
		return later
	case counted.Complete:
		return later || !knowsMore(known, counted)
	}
	return later && knowsMore(counted, known)
}

// knowsMore reports that a count has a field that another one lacks.
func knowsMore(counted, known *v1alpha1.PreservedDataStatus) bool {
	return slices.ContainsFunc(counted.Versions, func(of v1alpha1.PreservedVersion) bool {
		before := PreservedOf(known, of.Version)
		return before == nil || !before.MoreFields && slices.ContainsFunc(of.Fields, func(field v1alpha1.PreservedField) bool {
			return !slices.ContainsFunc(before.Fields, func(one v1alpha1.PreservedField) bool { return one.Path == field.Path })
		})
	})
}

// PreservedOf is the count of a version; nil if there is none.
func PreservedOf(counted *v1alpha1.PreservedDataStatus, version string) *v1alpha1.PreservedVersion {
	if counted == nil {
		return nil
	}
	for i := range counted.Versions {
		if counted.Versions[i].Version == version {
			return &counted.Versions[i]
		}
	}
	return nil
}

// Refused is an object whose preserved values of a version the last run could not move, or nil.
func (m *Migration) Refused(version string) *v1alpha1.MigrationFailure {
	last := m.Status.Migration
	if last == nil || last.Ruleset != m.Ruleset {
		return nil
	}
	record := m.run(last.Run).Record
	if record == nil {
		return nil
	}
	for i := range record.Refused {
		if record.Refused[i].Version == version {
			return &record.Refused[i].MigrationFailure
		}
	}
	return nil
}

// count converts a count into its form in the status.
func count(held *observed.Held) *v1alpha1.PreservedDataStatus {
	counted := &v1alpha1.PreservedDataStatus{
		Complete: held.All, Ruleset: held.Ruleset, Time: metav1.NewTime(held.Since).Rfc3339Copy(),
	}
	for i := range held.Versions {
		counted.Versions = append(counted.Versions, countOf(&held.Versions[i]))
	}
	return counted
}

func countOf(held *conversion.VersionHoldings) v1alpha1.PreservedVersion {
	of := v1alpha1.PreservedVersion{Version: held.Version, Objects: held.Objects, Unreadable: held.Unreadable, MoreFields: held.More}
	fields := slices.SortedStableFunc(slices.Values(held.Fields), func(a, b conversion.FieldHoldings) int { return cmp.Compare(b.Objects, a.Objects) })
	for _, field := range fields {
		if len(of.Fields) == maxPreservedFields {
			of.MoreFields = true
			break
		}
		of.Fields = append(of.Fields, v1alpha1.PreservedField{Path: field.Path, Objects: field.Objects})
	}
	return of
}

// Outdated reports that rules or schemas have changed since the count in the status.
func (m *Migration) Outdated() bool { return m.Status.PreservedData.Outdated(m.Wanted) }

// HasPlace reports that the storage version has a field of another version, by the current rules.
func (m *Migration) HasPlace(version, path string) bool {
	places := m.Places()
	return places != nil && places.Of(version, path) == conversion.WholePlace
}

// ToPlace reports that objects have preserved values that may have a field by the active rules,
// and that no run has tried to move them by these rules. One try is enough: the other values do
// not fit, or API servers refuse them.
func (m *Migration) ToPlace() bool {
	known, last := m.Status.PreservedData, m.Status.Migration
	tried := last != nil && last.Ruleset == m.Wanted && (last.State == v1alpha1.MigrationSucceeded || last.State == v1alpha1.MigrationFailed)
	if known == nil || len(known.Versions) == 0 || tried || !m.InCharge || m.Wanted == "" {
		return false
	}
	places, storage := m.Places(), crds.StorageVersion(m.CRD)
	return places != nil && len(crds.ServedVersions(m.CRD)) > 1 && slices.ContainsFunc(known.Versions, func(of v1alpha1.PreservedVersion) bool {
		return (of.Version == storage || crds.Serves(m.CRD, of.Version)) && (of.MoreFields || slices.ContainsFunc(of.Fields, func(field v1alpha1.PreservedField) bool {
			return places.Of(of.Version, field.Path) != conversion.NoPlace
		}))
	})
}
