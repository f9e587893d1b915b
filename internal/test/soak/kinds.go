// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
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
	// alone tells that nobody may write to the subject meanwhile.
	alone bool
}

// kinds are all of them: what authors of CustomResourceDefinitions do, and
// installers of theirs; what users of policies do; and what goes wrong.
var kinds = []kind{
	{name: "write", weight: 6, cluster: true, details: anywhere, do: (*player).nothing},
	{name: "begin", weight: 60, details: whereNothing, then: begun, do: (*player).begin, toRest: true, alone: true},
	// A version that is added before the converter is armed is served unconverted: api/docs/lifecycle.md.
	{name: "add version", weight: 12, details: absentVersions, then: added, do: (*player).editDefinition, fromRest: true},
	{name: "store at", weight: 10, details: storable, then: stored, do: (*player).editDefinition},
	{name: "serve", weight: 6, details: unserved, then: served, do: (*player).editDefinition},
	{name: "unserve", weight: 3, details: unservable, then: noLongerServed, do: (*player).editDefinition},
	// The API server refuses to remove what status.storedVersions still has.
	{name: "remove version", weight: 3, details: removable, then: removed, do: (*player).editDefinition, fromRest: true},
	{name: "overwrite conversion", weight: 5, details: overwritable, then: overwritten, do: (*player).overwriteConversion, fromRest: true, toRest: true, alone: true},
	{name: "end", weight: 1, details: endable, then: ended, do: (*player).end, toRest: true, alone: true},

	{name: "change policy", weight: 5, details: policyChanges, then: policyChanged, do: (*player).changePolicy},
	{name: "rotate authority", weight: 4, details: wherePolicy, then: policyChanged, do: (*player).rotateAuthority},
	{name: "trigger migration", weight: 3, details: wherePolicy, then: policyChanged, do: (*player).triggerMigration},
	{name: "pause migrations", weight: 2, details: whereGoing, then: pausedNow, do: (*player).pauseMigrations},
	{name: "resume migrations", weight: 8, details: wherePaused, then: resumedNow, do: (*player).pauseMigrations},
	{name: "abandon policy", weight: 2, details: wherePolicy, then: abandoned, do: (*player).abandonPolicy, fromRest: true, toRest: true},
	{name: "adopt", weight: 15, details: whereAbandoned, then: adopted, do: (*player).applyPolicy},

	{name: "kill", weight: 22, cluster: true, details: processNames, do: (*player).killProcesses},
	{name: "stop", weight: 8, cluster: true, lasts: true, details: processNames, do: (*player).stopProcesses},
	{name: "delete pods", weight: 6, cluster: true, details: podKinds, do: (*player).deletePods},
	{name: "delete its", weight: 4, details: deletable, do: (*player).deleteChild},
	{name: "fill disk", weight: 4, cluster: true, lasts: true, details: anywhere, do: (*player).fillDisk},
	{name: "age certificate", weight: 3, details: wherePolicy, do: (*player).ageCertificate, fromRest: true},
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
func whereAbandoned(s *subject) []string { return when(s.Exists && !s.Policy, "") }
func whereGoing(s *subject) []string     { return when(s.Policy && !s.Paused, "") }
func wherePaused(s *subject) []string    { return when(s.Policy && s.Paused, "") }
func endable(s *subject) []string        { return when(s.Policy && len(s.Versions) == len(versions), "") }

func absentVersions(s *subject) []string {
	return when(s.Policy, slices.DeleteFunc(slices.Clone(versions), func(version string) bool {
		return slices.Contains(s.Versions, version)
	})...)
}

func storable(s *subject) []string { return when(s.Policy, without(s.Served, s.Storage)...) }

func unserved(s *subject) []string {
	return when(s.Policy, slices.DeleteFunc(slices.Clone(s.Versions), func(version string) bool {
		return slices.Contains(s.Served, version)
	})...)
}

func unservable(s *subject) []string { return when(s.Policy, without(s.Served, s.Storage)...) }

// removable versions are in no use, and a migration has taken them out of storedVersions.
func removable(s *subject) []string {
	return when(s.Policy && !s.Paused, without(without(s.Versions, s.Storage), hub)...)
}

// mostOverwrites leaves one of what the operator undoes.
const mostOverwrites = 4

// What somebody else writes to spec.conversion.
const (
	strategyNone     = "with strategy None"
	foreignAuthority = "with another caBundle"
	foreignService   = "with another Service"
)

func overwritable(s *subject) []string {
	return when(s.Policy && s.Overwrites < mostOverwrites, strategyNone, foreignAuthority, foreignService)
}

func policyChanges(s *subject) []string { return when(s.Policy, changeNames()...) }

func deletable(s *subject) []string { return when(s.Policy, childNames...) }

func podKinds(*subject) []string { return []string{managerPods, converterPods, migrationPods} }

// What the model becomes.

func begun(s *subject, _ string) {
	*s = subject{Name: s.Name, Exists: true, Policy: true, Versions: []string{hub}, Served: []string{hub}, Storage: hub}
}

func ended(s *subject, _ string) { *s = subject{Name: s.Name} }

func added(s *subject, version string) {
	s.Versions = ordered(append(s.Versions, version))
	served(s, version)
}

func stored(s *subject, version string)         { s.Storage = version }
func served(s *subject, version string)         { s.Served = ordered(append(s.Served, version)) }
func noLongerServed(s *subject, version string) { s.Served = without(s.Served, version) }

func removed(s *subject, version string) {
	s.Versions = without(s.Versions, version)
	noLongerServed(s, version)
}

func overwritten(s *subject, _ string)   { s.Overwrites++ }
func policyChanged(s *subject, _ string) { s.Overwrites = 0 }
func pausedNow(s *subject, _ string)     { s.Paused, s.Overwrites = true, 0 }
func resumedNow(s *subject, _ string)    { s.Paused, s.Overwrites = false, 0 }
func abandoned(s *subject, _ string)     { s.Policy = false }
func adopted(s *subject, _ string)       { s.Policy, s.Paused, s.Overwrites = true, false, 0 }
