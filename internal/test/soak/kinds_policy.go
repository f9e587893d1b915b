// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// Steps that change the versions of a policy, or suspend it. A policy that sets a storage version,
// or retires a version, is the version's author from then on: api/docs/retiring.md.

// suspendable excludes policies with unfinished work.
func suspendable(s *subject) []string { return when(s.active() && !s.Unsettled, "") }

func suspendedNow(s *subject, _ string) { s.Suspended, s.Overwrites = true, 0 }
func activeNow(s *subject, _ string)    { s.Suspended, s.Overwrites = false, 0 }

func promotable(s *subject) []string { return when(s.active(), s.storages()...) }

// wherePromoted: the promoted version is the storage version by now, and remains so.
func wherePromoted(s *subject) []string {
	return when(s.active() && !s.Unsettled && s.Wanted != "", "")
}

func promoted(s *subject, version string) {
	stored(s, version)
	s.Wanted, s.Unsettled, s.Overwrites = version, true, 0
}

func noLongerPromoted(s *subject, _ string) { s.Wanted, s.Overwrites = "", 0 }

// retirement is the kind of steps that change the retirement action of a version.
const retirement = "retire"

// retirements are the retirement actions. The hub is never removed.
var retirements = []v1alpha1.RetirementAction{
	v1alpha1.RetirementReport, v1alpha1.RetirementDeprecate, v1alpha1.RetirementUnserve, v1alpha1.RetirementRemove}

// retirable returns versions with their possible actions. A version that is not served belongs to
// the author of the CRD, unless the policy unserved it. While migrations are suspended, nothing can be
// retired, because that needs evidence.
func retirable(s *subject) []string {
	if !s.active() || s.MigrationsSuspended {
		return nil
	}
	var details []string
	for _, version := range without(s.Versions, s.Storage) {
		so := s.Retires[version]
		if so == "" && !slices.Contains(s.Served, version) {
			continue
		}
		for _, action := range retirements {
			switch {
			case action == v1alpha1.RetirementRemove:
				details = append(details, s.removals(version)...)
			case action != so:
				details = append(details, version+" to "+string(action))
			}
		}
	}
	return details
}

// acceptances are variants of acceptedLosses by version. A path includes all fields below it.
var acceptances = map[string][][]string{
	joined: {nil, {".spec.note"}, {".spec.note", hostOnlyPath}},
	nested: {nil, {".spec.timeoutSeconds"}, {".spec"}},
}

// removals returns the removals of a version that differ from the current one, and whose result the
// model can predict.
func (s *subject) removals(version string) []string {
	var details []string
	for _, accepted := range acceptances[version] {
		same := s.Retires[version] == v1alpha1.RetirementRemove && slices.Equal(accepted, s.Accepts[version])
		if _, certain := s.blocker(version, accepted); certain && !same {
			details = append(details, removalOf(version, accepted))
		}
	}
	return details
}

const (
	accepting = " accepting "
	and       = " and "
)

func removalOf(version string, accepted []string) string {
	detail := version + " to " + string(v1alpha1.RetirementRemove)
	if len(accepted) > 0 {
		detail += accepting + strings.Join(accepted, and)
	}
	return detail
}

// readRetirement parses the detail of a step that retires a version.
func readRetirement(detail string) (version string, action v1alpha1.RetirementAction, accepted []string) {
	version, rest, _ := strings.Cut(detail, " to ")
	text, losses, some := strings.Cut(rest, accepting)
	if some {
		accepted = strings.Split(losses, and)
	}
	return version, v1alpha1.RetirementAction(text), accepted
}

// retired: each action includes the lesser ones, and reverts the greater ones.
func retired(s *subject, detail string) {
	version, action, accepted := readRetirement(detail)
	wasServed := slices.Contains(s.Served, version)
	s.Retires, s.Overwrites = set(s.Retires, version, action), 0
	delete(s.Blocked, version)
	delete(s.Accepts, version)
	if len(accepted) > 0 {
		s.Accepts = set(s.Accepts, version, accepted)
	}
	s.Deprecated, s.Served = without(s.Deprecated, version), without(s.Served, version)
	switch action {
	case v1alpha1.RetirementReport:
		s.Served = with(s.Served, version)
	case v1alpha1.RetirementDeprecate:
		s.Served, s.Deprecated = with(s.Served, version), with(s.Deprecated, version)
	case v1alpha1.RetirementUnserve:
		s.Deprecated = with(s.Deprecated, version)
	case v1alpha1.RetirementRemove:
		removedWhole(s, version, wasServed)
	}
}

// removedWhole: the version is removed, with the accepted losses. If an object has another value
// that would be lost, the version stays, and is still served if it was.
func removedWhole(s *subject, version string, wasServed bool) {
	blocker, _ := s.blocker(version, s.Accepts[version])
	if blocker == "" {
		s.Versions = without(s.Versions, version)
		s.discard(version)
		return
	}
	s.Blocked, s.Deprecated = set(s.Blocked, version, blocker), with(s.Deprecated, version)
	if wasServed {
		s.Served = with(s.Served, version)
	}
}

// reported returns the versions whose retirement can end without an effect to revert.
func reported(s *subject) []string {
	var all []string
	for _, version := range versions {
		if action := s.Retires[version]; action == v1alpha1.RetirementReport || action != "" && !slices.Contains(s.Versions, version) {
			all = append(all, version)
		}
	}
	return when(s.Policy, all...)
}

func noLongerRetired(s *subject, version string) {
	delete(s.Retires, version)
	delete(s.Accepts, version)
	s.Overwrites = 0
}
