// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package retirement

import (
	"fmt"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/migration"
)

// strands blocks a version while objects have preserved values that only it can express.
func (r *Retirement) strands(name string) []v1alpha1.VersionBlock {
	if !r.Rulesets() || len(r.CRD.Spec.Versions) < 2 {
		return nil
	}
	known := r.migration.Status.PreservedData
	if of := migration.PreservedOf(known, name); of != nil {
		if what := r.unaccepted(of); what != "" {
			return []v1alpha1.VersionBlock{{Reason: v1alpha1.BlockedPreservedData, Message: what}}
		}
	}
	if why := r.notCounted(known, name); why != "" {
		return []v1alpha1.VersionBlock{{Reason: v1alpha1.BlockedPreservedDataUnknown, Message: fmt.Sprintf(
			"it is unknown whether objects have preserved values of %s: %s: %s", name, why, r.howToCount(name))}}
	}
	return nil
}

// unaccepted names preserved values of a version whose loss the policy does not accept.
func (r *Retirement) unaccepted(of *v1alpha1.PreservedVersion) string {
	var fields []v1alpha1.PreservedField
	for _, field := range of.Fields {
		if !conversion.Accepts(r.acceptedLosses(of.Version), field.Path) {
			fields = append(fields, field)
		}
	}
	switch {
	case len(fields) > 0:
		return fmt.Sprintf("%d objects have preserved values that only this version can express: %s: %s, or accept their loss in spec.retirement[].acceptedLosses",
			of.Objects, someOf(fields, of.MoreFields), r.howToPlace(of.Version, fields))
	case of.MoreFields:
		return fmt.Sprintf("%d objects have preserved values of more fields than status.preservedData lists: "+
			"accept the loss of parents of those fields in spec.retirement[].acceptedLosses", of.Objects)
	case of.Unreadable > 0:
		return fmt.Sprintf("%d objects have an annotation %s that cannot be parsed: inspect it, and remove it if nothing is lost by that",
			of.Unreadable, conversion.AnnotationName(r.CRD.Name, of.Version))
	}
	return ""
}

func (r *Retirement) acceptedLosses(version string) []string {
	if entry := r.retirement(version); entry != nil {
		return entry.AcceptedLosses
	}
	return nil
}

// someOf names the first three fields.
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

// howToPlace says how preserved values can be moved to fields of the storage version.
func (r *Retirement) howToPlace(version string, fields []v1alpha1.PreservedField) string {
	storage, served := crds.StorageVersion(r.CRD), ""
	if !crds.Serves(r.CRD, version) {
		served = "serve " + version + " again, for example by its action in spec.retirement, and "
	}
	placeless := func(field v1alpha1.PreservedField) bool { return !r.migration.HasPlace(version, field.Path) }
	switch refused := r.migration.Refused(version); {
	case slices.ContainsFunc(fields, placeless):
		return fmt.Sprintf("%sadd the fields to %s", served, storage)
	case r.migration.ToPlace():
		return fmt.Sprintf("%s has these fields now, and a migration moves the values there: %s", storage, r.howMigrated())
	case refused != nil:
		return fmt.Sprintf("%s has these fields, and run %s could not move all values there, for example of %s (%s; its record has more): "+
			"%scorrect the objects or change the schema, and then spec.migration.trigger", storage, r.migration.Status.Migration.Run, refused.Object, refused.Message, served)
	}
	return fmt.Sprintf("%s has these fields: %schange spec.migration.trigger to move the values there", storage, served)
}

// notCounted says why a count does not prove that no object has preserved values of a version.
func (r *Retirement) notCounted(known *v1alpha1.PreservedDataStatus, name string) string {
	record := r.record(name)
	switch {
	case known == nil:
		return "no migration has counted them"
	case r.migration.Outdated():
		return "rules or schemas changed since the last count"
	case !known.Complete:
		return "the last count did not see all objects"
	case record != nil && record.UnservedTime != nil && known.Time.Before(record.UnservedTime):
		return "clients could write this version after the last count"
	}
	return ""
}

// howToCount says how to get a count. Before it removes a version, the operator counts itself.
func (r *Retirement) howToCount(name string) string {
	entry, record := r.retirement(name), r.record(name)
	switch {
	case record != nil && record.UnservedTime != nil && reaches(entry.Action, v1alpha1.RetirementUnserve):
		return "the operator counts them again once the version was unserved for long enough"
	case r.Policy.Spec.Migration.Mode == v1alpha1.MigrationNever:
		return "set spec.migration.mode to OnTrigger and change spec.migration.trigger to count them"
	}
	return "change spec.migration.trigger to count them"
}

// doubts says what is wrong with the accepted losses of a version. It continues a message, and is
// empty if nothing is wrong.
func (r *Retirement) doubts(entry *v1alpha1.Retirement) string {
	name := string(entry.Version)
	if version, _ := crds.Version(r.CRD, name); version == nil || len(entry.AcceptedLosses) == 0 {
		return ""
	}
	const field = "; its acceptedLosses in spec.retirement "
	for _, path := range entry.AcceptedLosses {
		if _, err := conversion.ParsePath(path); err != nil {
			return fmt.Sprintf("%shave %q, which is not a path and is ignored: %v", field, path, err)
		}
	}
	var says string
	if unknown := r.unknownLosses(name, entry.AcceptedLosses); len(unknown) > 0 {
		says += fmt.Sprintf("%shave %s, but %s has no such field, and no object has a preserved value of it: correct the path", field, strings.Join(unknown, ", "), name)
	}
	if !reaches(entry.Action, v1alpha1.RetirementRemove) {
		says += field + "take effect only with the action Remove"
	}
	return says
}

// unknownLosses are accepted losses that are neither a field of the version nor a preserved value,
// as far as that is known.
func (r *Retirement) unknownLosses(version string, accepted []string) []string {
	places, known := r.migration.Places(), migration.PreservedOf(r.migration.Status.PreservedData, version)
	var unknown []string
	for _, path := range accepted {
		held := known != nil && (known.MoreFields || slices.ContainsFunc(known.Fields, func(field v1alpha1.PreservedField) bool {
			return conversion.Accepts([]string{path}, field.Path)
		}))
		if places != nil && !held && !places.Has(version, path) {
			unknown = append(unknown, path)
		}
	}
	return unknown
}
