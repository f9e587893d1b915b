// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/crds"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
)

// Objects hold, in annotations, values that their version in etcd has no place for.
// What goes through objects counts them (a migration run, a sample, a retirement), and
// status.preservedData remembers the best count: one of all objects before one of some.
// When rules or schemas change so that a field of it has a place, a run makes data of
// its values (gate.go); as long as objects hold values of a version, it is not
// removed (versions.go, retired.go).

// maxPreservedFields is how many fields of a version the status names.
const maxPreservedFields = 20

// notePreserved takes what was counted into the status, and judges what it has.
func (m *Migration) notePreserved() {
	if m.CRD == nil || !m.Rulesets() {
		m.Status.PreservedData = nil
		return
	}
	if before := m.Policy.Status.CRD; before != nil && before.UID != m.CRD.UID {
		m.Status.PreservedData = nil
	}
	m.takeInquiry(m.Samples, v1alpha1.PreservedDataBySample)
	m.takeInquiry(m.Resampled, v1alpha1.PreservedDataBySample)
	m.takeInquiry(m.Cleared, v1alpha1.PreservedDataByRetirement)
	m.judgePreserved()
}

func (m *Migration) takeInquiry(asked *observed.BackgroundCheck, source v1alpha1.PreservedDataSource) {
	if asked != nil && !asked.Running && asked.Held != nil && asked.Held.CRD == m.CRD.UID {
		m.takeCount(m.count(asked.Held, source))
	}
}

// noteRunCount takes what a run counted into the status, when it has ended.
func (m *Migration) noteRunCount(run observed.Run) {
	record := run.Record
	if record == nil || record.Ruleset == "" {
		return
	}
	held := &observed.Held{Ruleset: record.Ruleset, Since: record.CountedFrom().Time, All: record.Complete()}
	if record.Preserved != nil {
		held.Holdings = *record.Preserved
	}
	counted := m.count(held, v1alpha1.PreservedDataByMigration)
	counted.Run = run.ID
	m.takeCount(counted)
	m.judgePreserved()
}

// takeCount keeps a count if it says more than the one that there is. Of two within
// one second, which is all that a status tells of time, the one that is taken last says
// more: small kinds are gone through, and cleaned, in less.
func (m *Migration) takeCount(counted *v1alpha1.PreservedDataStatus) {
	known := m.Status.PreservedData
	if known != nil && !saysMore(counted, known) {
		return
	}
	m.Status.PreservedData = counted
}

// saysMore reports whether one count says more than another: of two of all objects, or
// of some, the later one. Beside one of all objects, one of some says more if it is
// later and shows a field that the other does not know of.
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

// knowsMore reports whether a count shows a field that another one does not know of.
func knowsMore(counted, known *v1alpha1.PreservedDataStatus) bool {
	return slices.ContainsFunc(counted.Versions, func(of v1alpha1.PreservedVersion) bool {
		before := PreservedOf(known, of.Version)
		return before == nil || !before.MoreFields && slices.ContainsFunc(of.Fields, func(field v1alpha1.PreservedField) bool {
			return !slices.ContainsFunc(before.Fields, func(one v1alpha1.PreservedField) bool { return one.Path == field.Path })
		})
	})
}

// PreservedOf is what was counted of a version; nil where nothing was.
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

// count writes what was counted as a status tells it.
func (m *Migration) count(held *observed.Held, source v1alpha1.PreservedDataSource) *v1alpha1.PreservedDataStatus {
	counted := &v1alpha1.PreservedDataStatus{
		Objects: held.Objects, Bytes: held.Bytes, LargestObject: held.Largest, LargestBytes: held.LargestBytes,
		Seen: held.Seen, Complete: held.All, Source: source, Ruleset: held.Ruleset, Time: metav1.NewTime(held.Since).Rfc3339Copy(),
	}
	for i := range held.Versions {
		counted.Versions = append(counted.Versions, countOf(&held.Versions[i]))
	}
	return counted
}

func countOf(held *conversion.VersionHoldings) v1alpha1.PreservedVersion {
	of := v1alpha1.PreservedVersion{Version: held.Version, Objects: held.Objects, Bytes: held.Bytes, Unreadable: held.Unreadable, MoreFields: held.More}
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

// judgePreserved says what of the fields has a place by the rules of now, and whether
// they were counted by those.
func (m *Migration) judgePreserved() {
	known := m.Status.PreservedData
	if known == nil {
		return
	}
	known.Outdated = known.Ruleset != m.Wanted
	if len(known.Versions) == 0 {
		return
	}
	places := m.Places()
	for i := range known.Versions {
		of := &known.Versions[i]
		of.WithPlace = 0
		for j := range of.Fields {
			field := &of.Fields[j]
			if field.HasPlace = places != nil && places.Of(of.Version, field.Path) == conversion.WholePlace; field.HasPlace {
				of.WithPlace++
			}
		}
	}
}

// ToPlace reports whether objects hold values that may have a place by the rules that
// are in force, and no run has tried to give it to them by those. One try is enough:
// the rest after that does not fit, or is refused.
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
