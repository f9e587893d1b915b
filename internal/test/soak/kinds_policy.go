// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// What policies say of versions, and of the operator. A policy that wants a storage
// version, or retires a version, is its author from then on: api/docs/retiring.md.

// suspendable policies have nothing half done.
func suspendable(s *subject) []string { return when(s.active() && !s.Unsettled, "") }

func suspendedNow(s *subject, _ string) { s.Suspended, s.Overwrites = true, 0 }
func activeNow(s *subject, _ string)    { s.Suspended, s.Overwrites = false, 0 }

func promotable(s *subject) []string { return when(s.active(), s.storages()...) }

// wherePromoted: what was promoted is the storage version by now, and stays it.
func wherePromoted(s *subject) []string {
	return when(s.active() && !s.Unsettled && s.Wanted != "", "")
}

func promoted(s *subject, version string) {
	stored(s, version)
	s.Wanted, s.Unsettled, s.Overwrites = version, true, 0
}

func noLongerPromoted(s *subject, _ string) { s.Wanted, s.Overwrites = "", 0 }

// retirements are how far a policy goes with a version. The hub is never removed.
var retirements = []v1alpha1.RetirementAction{
	v1alpha1.RetirementReport, v1alpha1.RetirementDeprecate, v1alpha1.RetirementUnserve, v1alpha1.RetirementRemove}

// retirable names versions, and how far to go with each. One that is not served is
// its author's, unless the policy did that. Migrations that are paused prove nothing,
// and nothing is retired without a proof.
func retirable(s *subject) []string {
	if !s.active() || s.Paused {
		return nil
	}
	var details []string
	for _, version := range without(s.Versions, s.Storage) {
		so := s.Retires[version]
		if so == "" && !slices.Contains(s.Served, version) {
			continue
		}
		for _, action := range retirements {
			if action != so && (action != v1alpha1.RetirementRemove || version != hub) {
				details = append(details, version+" to "+string(action))
			}
		}
	}
	return details
}

// retired: each action includes those before it, and takes back those after it.
func retired(s *subject, detail string) {
	version, text, _ := strings.Cut(detail, " to ")
	action := v1alpha1.RetirementAction(text)
	if s.Retires == nil {
		s.Retires = map[string]v1alpha1.RetirementAction{}
	}
	s.Retires[version], s.Overwrites = action, 0
	s.Deprecated, s.Served = without(s.Deprecated, version), without(s.Served, version)
	switch action {
	case v1alpha1.RetirementReport:
		s.Served = with(s.Served, version)
	case v1alpha1.RetirementDeprecate:
		s.Served, s.Deprecated = with(s.Served, version), with(s.Deprecated, version)
	case v1alpha1.RetirementUnserve:
		s.Deprecated = with(s.Deprecated, version)
	case v1alpha1.RetirementRemove:
		s.Versions = without(s.Versions, version)
	}
}

// reported are versions of which a policy has nothing left to take back.
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
	s.Overwrites = 0
}
