// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// kind is one kind of steps.
type kind struct {
	name string
	// weight is how often it comes, against the others that are possible.
	weight int
	// details are what it can do to a subject, which is nil for kinds that happen to
	// the cluster; none where it is not possible.
	details func(*subject) []string
	// then is what that makes of the subject.
	then func(*subject, string)
	// do carries it out.
	do func(*player, context.Context, step) error

	// cluster tells that it happens to the cluster as a whole.
	cluster bool
	// lasts tells that it takes some seconds.
	lasts bool
	// fromRest is for what authors must not do while something goes on. What the
	// pages say of it is the reason that is given.
	fromRest bool
	// toRest is what nothing else may happen beside.
	toRest bool
	// alone tells that no one may write to the subject meanwhile.
	alone bool
}

// kinds are all of them: what authors of CustomResourceDefinitions do, and
// installers of theirs; what users of policies do; and what goes wrong.
var kinds = []kind{
	{name: "write", weight: 6, cluster: true, details: anywhere, do: (*player).nothing},
	{name: "begin", weight: 60, details: whereNothing, then: begun, do: (*player).begin, toRest: true, alone: true},
	// A version that is added before the converter is active is served unconverted: api/docs/lifecycle.md.
	{name: "add version", weight: 12, details: absentVersions, then: added, do: (*player).editDefinition, fromRest: true},
	{name: "store at", weight: 10, details: storable, then: stored, do: (*player).editDefinition},
	{name: "serve", weight: 6, details: unserved, then: served, do: (*player).editDefinition},
	{name: "unserve", weight: 3, details: unservable, then: noLongerServed, do: (*player).editDefinition},
	// The API server refuses to remove what status.storedVersions still has.
	{name: "remove version", weight: 3, details: removable, then: removed, do: (*player).editDefinition, fromRest: true},
	{name: "overwrite conversion", weight: 5, details: overwritable, then: overwritten, do: (*player).overwriteConversion, fromRest: true, toRest: true, alone: true},
	{name: "prune storedVersions", weight: 14, details: whereBehind, do: (*player).pruneStoredVersions},
	{name: "end", weight: 1, details: endable, then: ended, do: (*player).end, toRest: true, alone: true},

	{name: "change policy", weight: 5, details: policyChanges, then: policyChanged, do: (*player).changePolicy},
	{name: "rotate authority", weight: 4, details: whereActive, then: policyChanged, do: (*player).rotateAuthority},
	{name: "trigger migration", weight: 3, details: wherePolicy, then: policyChanged, do: (*player).triggerMigration},
	{name: "pause migrations", weight: 2, details: whereGoing, then: pausedNow, do: (*player).pauseMigrations},
	{name: "resume migrations", weight: 8, details: wherePaused, then: resumedNow, do: (*player).pauseMigrations},
	{name: "suspend policy", weight: 3, details: suspendable, then: suspendedNow, do: (*player).suspendPolicy},
	{name: "resume policy", weight: 10, details: whereSuspended, then: activeNow, do: (*player).suspendPolicy},
	{name: "promote", weight: 6, details: promotable, then: promoted, do: (*player).wantVersions},
	{name: "no longer promote", weight: 6, details: wherePromoted, then: noLongerPromoted, do: (*player).wantVersions},
	// How far it has come is known once it is waited for.
	{name: retirement, weight: 8, details: retirable, then: retired, do: (*player).retireVersion, toRest: true},
	{name: "no longer retire", weight: 3, details: reported, then: noLongerRetired, do: (*player).wantVersions},
	{name: "abandon policy", weight: 2, details: wherePolicy, then: abandoned, do: (*player).abandonPolicy, fromRest: true, toRest: true},
	{name: "adopt", weight: 15, details: whereAbandoned, then: adopted, do: (*player).applyPolicy},

	{name: "kill", weight: 22, cluster: true, details: processNames, do: (*player).killProcesses},
	{name: "stop", weight: 8, cluster: true, lasts: true, details: processNames, do: (*player).stopProcesses},
	{name: "delete pods", weight: 6, cluster: true, details: podKinds, do: (*player).deletePods},
	{name: "delete its", weight: 4, details: deletable, then: unsettled, do: (*player).deleteChild},
	{name: "fill disk", weight: 4, cluster: true, lasts: true, details: anywhere, do: (*player).fillDisk},
	{name: "age certificate", weight: 3, details: whereActive, do: (*player).ageCertificate, fromRest: true},
}

func kindNamed(name string) kind {
	return kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })]
}

// Details.

// plain is the detail of kinds that have nothing to choose.
var plain = []string{""}

func anywhere(*subject) []string { return plain }

func when(condition bool, details ...string) []string {
	if !condition {
		return nil
	}
	return details
}

func whereNothing(s *subject) []string   { return when(!s.Exists, "") }
func wherePolicy(s *subject) []string    { return when(s.Policy, "") }
func whereActive(s *subject) []string    { return when(s.active(), "") }
func whereSuspended(s *subject) []string { return when(s.Policy && s.Suspended, "") }
func whereBehind(s *subject) []string    { return when(s.Exists && s.Behind, "") }
func whereAbandoned(s *subject) []string { return when(s.Exists && !s.Policy, "") }
func whereGoing(s *subject) []string     { return when(s.Policy && !s.Paused, "") }
func wherePaused(s *subject) []string    { return when(s.Policy && s.Paused, "") }
func endable(s *subject) []string        { return when(s.Policy && len(s.Versions) == len(versions), "") }

func absentVersions(s *subject) []string {
	return when(s.active(), s.unretired(slices.DeleteFunc(slices.Clone(versions), func(version string) bool {
		return slices.Contains(s.Versions, version)
	}))...)
}

func storable(s *subject) []string { return when(s.Policy && s.Wanted == "", s.storages()...) }

// storages are versions that may become the storage version.
func (s *subject) storages() []string {
	return slices.DeleteFunc(without(s.Served, s.Storage), func(version string) bool {
		return s.Retires[version] != "" && s.Retires[version] != v1alpha1.RetirementReport
	})
}

// unretired are those versions that are the author's to serve and to remove: a
// version has one author.
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

// removable versions are in no use, and a migration has taken them out of storedVersions.
func removable(s *subject) []string {
	return when(s.active() && !s.Paused, s.unretired(without(without(s.Versions, s.Storage), hub))...)
}

// mostOverwrites leaves one of what the operator undoes.
const mostOverwrites = 4

// What another client writes to spec.conversion.
const (
	strategyNone     = "with strategy None"
	foreignAuthority = "with another caBundle"
	foreignService   = "with another Service"
)

func overwritable(s *subject) []string {
	return when(s.active() && s.Overwrites < mostOverwrites, strategyNone, foreignAuthority, foreignService)
}

func policyChanges(s *subject) []string { return when(s.Policy, changeNames()...) }

func deletable(s *subject) []string { return when(s.active(), childNames...) }

func podKinds(*subject) []string { return []string{managerPods, converterPods, migrationPods} }

// What the model becomes.

func begun(s *subject, _ string) {
	*s = subject{Name: s.Name, Exists: true, Policy: true, Versions: []string{hub}, Served: []string{hub}, Storage: hub}
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

func overwritten(s *subject, _ string)   { s.Overwrites++ }
func policyChanged(s *subject, _ string) { s.Overwrites = 0 }
func pausedNow(s *subject, _ string)     { s.Paused, s.Overwrites = true, 0 }
func resumedNow(s *subject, _ string)    { s.Paused, s.Overwrites = false, 0 }
func unsettled(s *subject, _ string)     { s.Unsettled = true }

// abandoned: what the policy says goes with it, and what it has done stays.
func abandoned(s *subject, _ string) {
	s.Policy, s.Paused, s.Suspended, s.Wanted, s.Retires = false, false, false, "", nil
	s.Accepts, s.Kept = nil, nil
}

func adopted(s *subject, _ string) { s.Policy, s.Unsettled, s.Overwrites = true, true, 0 }
