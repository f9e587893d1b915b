// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// kind is a kind of steps.
type kind struct {
	name string
	// weight is the relative frequency among the possible kinds.
	weight int
	// details returns the variants of the step that are possible for a subject, if any. The subject
	// is nil for kinds that affect the whole cluster.
	details func(*subject) []string
	// apply applies the step to the model.
	apply func(*subject, string)
	// detailsIn and applyTo take the place of details and apply, for kinds that affect fleets.
	detailsIn func(*world) []string
	applyTo   func(*world, string)
	// do performs the step.
	do func(*player, context.Context, step) error

	// cluster is set for kinds that affect the whole cluster instead of one subject.
	cluster bool
	// timed is set for kinds that take some seconds.
	timed bool
	// whenIdle is set for actions that are allowed only while nothing changes, for the documented
	// reason.
	whenIdle bool
	// waits is set for kinds after which the next step must wait until nothing changes.
	waits bool
	// noWrites is set for kinds during which no client may write to the subject.
	noWrites bool
	// gentle is set for kinds that leave at least one converter pod of each policy: if nothing else
	// changes, no conversion fails, not even until nothing changes any more.
	gentle bool
}

// kinds has every kind: actions of CRD authors and installers, actions of policy users, failures.
var kinds = []kind{
	{name: "write", weight: 6, cluster: true, details: anywhere, do: (*player).nothing},
	{name: "begin", weight: 60, details: beginnings, apply: begun, do: (*player).begin, waits: true, noWrites: true},
	// A version that is added before the converter is active is served unconverted:
	// api/docs/lifecycle.md.
	{name: "add version", weight: 12, details: absentVersions, apply: added, do: (*player).editDefinition, whenIdle: true},
	{name: "store at", weight: 10, details: storable, apply: stored, do: (*player).editDefinition},
	{name: "serve", weight: 6, details: unserved, apply: served, do: (*player).editDefinition},
	{name: "unserve", weight: 3, details: unservable, apply: noLongerServed, do: (*player).editDefinition},
	// The API server refuses to remove a version in status.storedVersions.
	{name: "remove version", weight: 3, details: removable, apply: removed, do: (*player).editDefinition, whenIdle: true},
	{name: "overwrite conversion", weight: 5, details: overwritable, apply: overwritten, do: (*player).overwriteConversion, whenIdle: true, waits: true, noWrites: true},
	{name: "prune storedVersions", weight: 14, details: whereBehind, do: (*player).pruneStoredVersions},
	{name: "end", weight: 1, details: endable, apply: ended, do: (*player).end, waits: true, noWrites: true},

	{name: "move", weight: 8, details: movable, apply: moved, do: (*player).movePolicy, gentle: true},
	{name: "change policy", weight: 5, details: policyChanges, apply: policyChanged, do: (*player).changePolicy, gentle: true},
	{name: "rotate authority", weight: 4, details: whereOwnPods, apply: policyChanged, do: (*player).rotateAuthority, gentle: true},
	{name: "trigger migration", weight: 3, details: wherePolicy, apply: policyChanged, do: (*player).triggerMigration},
	{name: "suspend migrations", weight: 2, details: whereMigrationsRun, apply: migrationsSuspendedNow, do: (*player).suspendMigrations},
	{name: "resume migrations", weight: 8, details: whereMigrationsSuspended, apply: migrationsResumedNow, do: (*player).suspendMigrations},
	{name: "suspend policy", weight: 3, details: suspendable, apply: suspendedNow, do: (*player).suspendPolicy},
	{name: "resume policy", weight: 10, details: whereSuspended, apply: activeNow, do: (*player).suspendPolicy},
	{name: "promote", weight: 6, details: promotable, apply: promoted, do: (*player).wantVersions},
	{name: "no longer promote", weight: 6, details: wherePromoted, apply: noLongerPromoted, do: (*player).wantVersions},
	// The result is known only after waiting.
	{name: retirement, weight: 8, details: retirable, apply: retired, do: (*player).retireVersion, waits: true},
	{name: "no longer retire", weight: 3, details: reported, apply: noLongerRetired, do: (*player).wantVersions},
	{name: "abandon policy", weight: 2, details: wherePolicy, apply: abandoned, do: (*player).abandonPolicy, whenIdle: true, waits: true},
	{name: "adopt", weight: 15, details: whereAbandoned, apply: adopted, do: (*player).applyPolicy},

	{name: "scale fleet", weight: 6, cluster: true, detailsIn: scalable, applyTo: scaled, do: (*player).scaleFleet, gentle: true},
	{name: "rotate authority of fleet", weight: 6, cluster: true, detailsIn: usedByActive, applyTo: unsettledIn, do: (*player).rotateFleet, gentle: true, waits: true},
	// A deleted fleet stays until its policies have moved.
	{name: "replace fleet", weight: 4, cluster: true, detailsIn: replaceable, applyTo: fleetReplaced, do: (*player).replaceFleet, whenIdle: true, waits: true, gentle: true},
	{name: "scale manager", weight: 3, cluster: true, detailsIn: managerSizes, applyTo: scaledManager, do: (*player).scaleManager, gentle: true},
	{name: "delete pods of fleet", weight: 6, cluster: true, detailsIn: podsOfFleets, do: (*player).deleteFleetPods, gentle: true},
	// Someone edits the ConfigMaps. A pod that starts before the operator reverts that lacks rules.
	{name: "edit rulesets of fleet", weight: 8, cluster: true, detailsIn: rulesetEdits, applyTo: unsettledIn, do: (*player).editRulesets, whenIdle: true, waits: true, gentle: true},
	{name: "delete of fleet", weight: 6, cluster: true, detailsIn: fleetChildren, applyTo: unsettledIn, do: (*player).deleteFleetChild},
	{name: "age certificate of fleet", weight: 3, cluster: true, detailsIn: usedByActive, do: (*player).ageFleetCertificate, whenIdle: true},

	{name: "kill", weight: 22, cluster: true, details: processNames, do: (*player).killProcesses},
	{name: "stop", weight: 8, cluster: true, timed: true, details: processNames, do: (*player).stopProcesses},
	{name: "delete pods", weight: 6, cluster: true, details: podKinds, do: (*player).deletePods},
	{name: "delete its", weight: 4, details: deletable, apply: unsettled, do: (*player).deleteChild},
	{name: "fill disk", weight: 4, cluster: true, timed: true, details: anywhere, do: (*player).fillDisk},
	{name: "age certificate", weight: 3, details: whereOwnPods, do: (*player).ageCertificate, whenIdle: true},
}

func kindNamed(name string) kind {
	return kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })]
}

// Variants of steps.

func anywhere(*subject) []string { return []string{""} }

func when(condition bool, details ...string) []string {
	if !condition {
		return nil
	}
	return details
}

func wherePolicy(s *subject) []string        { return when(s.Policy, "") }
func whereSuspended(s *subject) []string     { return when(s.Policy && s.Suspended, "") }
func whereBehind(s *subject) []string        { return when(s.Exists && s.Behind, "") }
func whereAbandoned(s *subject) []string     { return when(s.Exists && !s.Policy, "") }
func whereMigrationsRun(s *subject) []string { return when(s.Policy && !s.MigrationsSuspended, "") }
func whereMigrationsSuspended(s *subject) []string {
	return when(s.Policy && s.MigrationsSuspended, "")
}
func endable(s *subject) []string { return when(s.Policy && len(s.Versions) == len(versions), "") }

func absentVersions(s *subject) []string {
	return when(s.active(), s.unretired(slices.DeleteFunc(slices.Clone(versions), func(version string) bool {
		return slices.Contains(s.Versions, version)
	}))...)
}

func storable(s *subject) []string { return when(s.Policy && s.Wanted == "", s.storages()...) }

// storages returns the versions that may become the storage version.
func (s *subject) storages() []string {
	return slices.DeleteFunc(without(s.Served, s.Storage), func(version string) bool {
		return s.Retires[version] != "" && s.Retires[version] != v1alpha1.RetirementReport
	})
}

// unretired returns the versions that the policy does not retire: only those may the author of the
// CRD unserve or remove.
func (s *subject) unretired(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(version string) bool { return s.Retires[version] != "" })
}

func unserved(s *subject) []string {
	return when(s.Policy, s.unretired(slices.DeleteFunc(slices.Clone(s.Versions), func(version string) bool {
		return slices.Contains(s.Served, version)
	}))...)
}

func unservable(s *subject) []string {
	return when(s.Policy, s.unretired(without(s.Served, s.Storage))...)
}

// removable returns unused versions, which a migration has removed from storedVersions.
func removable(s *subject) []string {
	return when(s.active() && !s.MigrationsSuspended, s.unretired(without(without(s.Versions, s.Storage), hub))...)
}

// mostOverwrites is one less than the number of overwrites that the operator reverts.
const mostOverwrites = 4

// Overwrites of spec.conversion by another client.
const (
	strategyNone     = "with strategy None"
	foreignAuthority = "with another caBundle"
	foreignService   = "with another Service"
)

func overwritable(s *subject) []string {
	return when(s.active() && s.Overwrites < mostOverwrites, strategyNone, foreignAuthority, foreignService)
}

func policyChanges(s *subject) []string { return when(s.Policy, changeNames(s.Fleet == "")...) }

func deletable(s *subject) []string { return when(s.active() && s.Fleet == "", childNames...) }

func podKinds(*subject) []string { return []string{managerPods, converterPods, migrationPods} }

// Effects on the model.

func begun(s *subject, place string) {
	*s = subject{Name: s.Name, Exists: true, Policy: true, Versions: []string{hub}, Served: []string{hub}, Storage: hub, Fleet: fleetAt(place)}
}

func ended(s *subject, _ string) { *s = subject{Name: s.Name} }

func added(s *subject, version string) {
	s.Versions, s.Unsettled = with(s.Versions, version), true
	served(s, version)
}

func stored(s *subject, version string)         { s.Storage, s.Behind = version, true }
func served(s *subject, version string)         { s.Served = with(s.Served, version) }
func noLongerServed(s *subject, version string) { s.Served = without(s.Served, version) }

func removed(s *subject, version string) {
	s.Versions, s.Deprecated = without(s.Versions, version), without(s.Deprecated, version)
	noLongerServed(s, version)
}

func overwritten(s *subject, _ string)            { s.Overwrites++ }
func policyChanged(s *subject, _ string)          { s.Overwrites = 0 }
func migrationsSuspendedNow(s *subject, _ string) { s.MigrationsSuspended, s.Overwrites = true, 0 }
func migrationsResumedNow(s *subject, _ string)   { s.MigrationsSuspended, s.Overwrites = false, 0 }
func unsettled(s *subject, _ string)              { s.Unsettled = true }

// abandoned resets the fields of the policy. Its effects on the CRD remain.
func abandoned(s *subject, _ string) {
	s.Policy, s.MigrationsSuspended, s.Suspended, s.Wanted, s.Retires = false, false, false, "", nil
	s.Accepts, s.Blocked = nil, nil
}

func adopted(s *subject, _ string) { s.Policy, s.Unsettled, s.Overwrites = true, true, 0 }
