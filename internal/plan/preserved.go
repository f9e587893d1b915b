// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/crds"
)

// Objects hold, in annotations, values that their version in etcd has no place for.
// What goes through objects counts them (a migration run, a sample, a retirement), and
// status.preservedData remembers the best count: one of all objects before one of some.
// When rules or schemas change so that a field of it has a place, a run makes data of
// its values (migrated.go); as long as objects hold values of a version, it is not
// removed (versions.go, retired.go).

// maxPreservedFields is how many fields of a version the status names.
const maxPreservedFields = 20

// Held is what was counted.
type Held struct {
	conversion.Holdings
	// CRD is the uid of the CustomResourceDefinition of the objects; empty where it is
	// known to be that of the policy.
	CRD types.UID
	// Ruleset is the hash of the rules by which it was counted.
	Ruleset string
	// Since is when the count began. What clients wrote from then on may not be in it.
	Since time.Time
	// All tells that all objects were looked at.
	All bool
}

// notePreserved takes what was counted into the status, and judges what it has.
func (s *state) notePreserved() {
	if s.CRD == nil || s.Policy.Spec.Converter.Declarative == nil {
		s.plan.Status.PreservedData = nil
		return
	}
	if before := s.Policy.Status.CRD; before != nil && before.UID != s.CRD.UID {
		s.plan.Status.PreservedData = nil
	}
	s.takeInquiry(s.Samples, v1alpha1.PreservedDataBySample)
	s.takeInquiry(s.Resampled, v1alpha1.PreservedDataBySample)
	s.takeInquiry(s.Cleared, v1alpha1.PreservedDataByRetirement)
	s.judgePreserved()
}

func (s *state) takeInquiry(asked *Inquiry, source v1alpha1.PreservedDataSource) {
	if asked != nil && !asked.Asking && asked.Held != nil && asked.Held.CRD == s.CRD.UID {
		s.takeCount(s.count(asked.Held, source))
	}
}

// noteRunCount takes what a run counted into the status, when it has ended.
func (s *state) noteRunCount(run Run) {
	progress := run.Progress
	if progress == nil || progress.Held == nil {
		return
	}
	counted := s.count(progress.Held, v1alpha1.PreservedDataByMigration)
	counted.Run, counted.Complete = run.ID, progress.Complete
	s.takeCount(counted)
	s.judgePreserved()
}

// takeCount keeps a count if it says more than the one that there is. Of two within
// one second, which is all that a status tells of time, the one that is taken last says
// more: small kinds are gone through, and cleaned, in less.
func (s *state) takeCount(counted *v1alpha1.PreservedDataStatus) {
	known := s.plan.Status.PreservedData
	if known != nil && !saysMore(counted, known) {
		return
	}
	s.plan.Status.PreservedData = counted
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
		before := preservedOf(known, of.Version)
		return before == nil || !before.MoreFields && slices.ContainsFunc(of.Fields, func(field v1alpha1.PreservedField) bool {
			return !slices.ContainsFunc(before.Fields, func(one v1alpha1.PreservedField) bool { return one.Path == field.Path })
		})
	})
}

func preservedOf(counted *v1alpha1.PreservedDataStatus, version string) *v1alpha1.PreservedVersion {
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
func (s *state) count(held *Held, source v1alpha1.PreservedDataSource) *v1alpha1.PreservedDataStatus {
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
func (s *state) judgePreserved() {
	known := s.plan.Status.PreservedData
	if known == nil {
		return
	}
	known.Outdated = known.Ruleset != s.planHash
	if len(known.Versions) == 0 {
		return
	}
	places := s.places()
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

// places tells what has a place in the storage version, nil where that is not known.
func (s *state) places() *conversion.Places {
	if s.Rules.Plan == nil || s.CRD == nil || s.placesKnown != nil {
		return s.placesKnown
	}
	if places, err := conversion.NewPlaces(s.Rules.Plan, crds.StorageVersion(s.CRD)); err == nil {
		s.placesKnown = places
	}
	return s.placesKnown
}

// toPlace reports whether objects hold values that may have a place by the rules that
// are in force, and no run has tried to give it to them by those. One try is enough:
// what is left after that does not fit, or is refused.
func (s *state) toPlace() bool {
	known, last := s.plan.Status.PreservedData, s.plan.Status.Migration
	tried := last != nil && last.Ruleset == s.planHash && (last.State == v1alpha1.MigrationSucceeded || last.State == v1alpha1.MigrationFailed)
	if known == nil || len(known.Versions) == 0 || tried || !s.armed || s.planHash == "" || s.named() != s.planHash {
		return false
	}
	places, storage := s.places(), crds.StorageVersion(s.CRD)
	return places != nil && len(crds.ServedVersions(s.CRD)) > 1 && slices.ContainsFunc(known.Versions, func(of v1alpha1.PreservedVersion) bool {
		return (of.Version == storage || crds.Serves(s.CRD, of.Version)) && (of.MoreFields || slices.ContainsFunc(of.Fields, func(field v1alpha1.PreservedField) bool {
			return places.Of(of.Version, field.Path) != conversion.NoPlace
		}))
	})
}

// rulesetOf is the hash of the rules of the policy, empty where it has none.
func (s *state) rulesetOf() string {
	if s.Policy.Spec.Converter.Declarative == nil {
		return ""
	}
	return s.planHash
}

// strands is what would be lost with a version: values that cannot be read without it.
func (s *state) strands(name string) []v1alpha1.VersionBlock {
	if s.Policy.Spec.Converter.Declarative == nil || len(s.CRD.Spec.Versions) < 2 {
		return nil
	}
	known := s.plan.Status.PreservedData
	if of := preservedOf(known, name); of != nil {
		if what := s.unaccepted(of); what != "" {
			return []v1alpha1.VersionBlock{{Reason: v1alpha1.BlockedPreservedData, Message: what}}
		}
	}
	if why := s.notCounted(known, name); why != "" {
		return []v1alpha1.VersionBlock{{Reason: v1alpha1.BlockedPreservedDataUnknown, Message: fmt.Sprintf(
			"whether objects hold values of %s in annotations is not known: %s: %s", name, why, s.howToCount(name))}}
	}
	return nil
}

// unaccepted says what objects hold of a version besides what may be lost.
func (s *state) unaccepted(of *v1alpha1.PreservedVersion) string {
	var fields []v1alpha1.PreservedField
	for _, field := range of.Fields {
		if !conversion.Accepts(s.acceptedLosses(of.Version), field.Path) {
			fields = append(fields, field)
		}
	}
	switch {
	case len(fields) > 0:
		return fmt.Sprintf("%d objects hold values of it in annotations, which cannot be read without it: %s: %s, or accept their loss in spec.retirement[].acceptedLosses",
			of.Objects, someOf(fields, of.MoreFields), s.howToPlace(of.Version, fields))
	case of.MoreFields:
		return fmt.Sprintf("%d objects hold values of it in annotations, of more fields than status.preservedData lists: "+
			"accept the loss of the objects above those fields in spec.retirement[].acceptedLosses", of.Objects)
	case of.Unreadable > 0:
		return fmt.Sprintf("%d objects have text in the annotation %s that cannot be read: look at it, and remove the annotation where nothing is lost by that",
			of.Unreadable, conversion.AnnotationName(s.CRD.Name, of.Version))
	}
	return ""
}

func (s *state) acceptedLosses(version string) []string {
	if entry := s.retirement(version); entry != nil {
		return entry.AcceptedLosses
	}
	return nil
}

// someOf names the first fields.
func someOf(fields []v1alpha1.PreservedField, more bool) string {
	const most = 3
	var paths []string
	for _, field := range fields[:min(most, len(fields))] {
		paths = append(paths, field.Path)
	}
	shown := strings.Join(paths, ", ")
	if more || len(fields) > most {
		shown += " and others"
	}
	return shown
}

// howToPlace says how values of fields come to a place in the storage version.
func (s *state) howToPlace(version string, fields []v1alpha1.PreservedField) string {
	storage, served := crds.StorageVersion(s.CRD), ""
	if !crds.Serves(s.CRD, version) {
		served = "serve " + version + " again, for example by its action in spec.retirement, and "
	}
	placeless := func(field v1alpha1.PreservedField) bool { return !field.HasPlace }
	switch refused := s.refusedOf(version); {
	case slices.ContainsFunc(fields, placeless):
		return fmt.Sprintf("%sgive the fields a place in %s", served, storage)
	case s.toPlace():
		return fmt.Sprintf("the fields have a place in %s now, and a migration puts the values there: %s", storage, s.howMigrated())
	case refused != nil:
		return fmt.Sprintf("the fields have a place in %s, and run %s could not put all values there, for example of %s (%s; status.migration.refused has more): "+
			"%scorrect the objects or change the schema, and then spec.migration.trigger", storage, s.plan.Status.Migration.Run, refused.Object, refused.Message, served)
	}
	return fmt.Sprintf("the fields have a place in %s: %schange spec.migration.trigger, and a migration puts the values there", storage, served)
}

// refusedOf is an object that kept values of a version in the last run, nil where there
// is none.
func (s *state) refusedOf(version string) *v1alpha1.MigrationFailure {
	last := s.plan.Status.Migration
	if last == nil || last.Ruleset != s.planHash {
		return nil
	}
	for i := range last.Refused {
		if strings.HasPrefix(last.Refused[i].Message, "at "+version+": ") {
			return &last.Refused[i]
		}
	}
	return nil
}

// notCounted says why a count does not tell that no object holds values of a version.
func (s *state) notCounted(known *v1alpha1.PreservedDataStatus, name string) string {
	record := s.record(name)
	switch {
	case known == nil:
		return "they were never counted"
	case known.Outdated:
		return "rules or schemas have changed since they were counted"
	case !known.Complete:
		return fmt.Sprintf("only %d objects were looked at", known.Seen)
	case record != nil && record.UnservedTime != nil && known.Time.Before(record.UnservedTime):
		return "clients could write it after they were counted"
	}
	return ""
}

// howToCount says what to do about what is not known. Before it removes a version, the
// operator counts by itself.
func (s *state) howToCount(name string) string {
	entry, record := s.retirement(name), s.record(name)
	switch {
	case record != nil && record.UnservedTime != nil && reaches(entry.Action, v1alpha1.RetirementUnserve):
		return "they are counted again when it has been unserved for long enough"
	case s.Policy.Spec.Migration.Mode == v1alpha1.MigrationNever:
		return "set spec.migration.mode to OnTrigger, and change spec.migration.trigger: a migration counts them"
	}
	return "change spec.migration.trigger: a migration counts them"
}
