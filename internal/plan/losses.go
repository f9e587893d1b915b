// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/crds"
)

// doubts says what is wrong with the accepted losses of a version, to go on where
// something was said of it: empty where nothing is.
func (s *state) doubts(entry *v1alpha1.Retirement) string {
	name := string(entry.Version)
	if version, _ := crds.Version(s.CRD, name); version == nil || len(entry.AcceptedLosses) == 0 {
		return ""
	}
	const field = "; its acceptedLosses in spec.retirement "
	for _, path := range entry.AcceptedLosses {
		if _, err := conversion.ParsePath(path); err != nil {
			return fmt.Sprintf("%shave %q, which is no path, and so nothing is accepted: %v", field, path, err)
		}
	}
	var says string
	if unknown := s.unknownLosses(name, entry.AcceptedLosses); len(unknown) > 0 {
		says += fmt.Sprintf("%shave %s, but %s has no such field, and no object holds a value of it: correct the path", field, strings.Join(unknown, ", "), name)
	}
	if !reaches(entry.Action, v1alpha1.RetirementRemove) {
		says += field + "take effect with the action Remove only"
	}
	return says
}

// unknownLosses are paths to nothing that a version has, or objects hold of it, as far
// as that is known.
func (s *state) unknownLosses(version string, accepted []string) []string {
	places, known := s.places(), preservedOf(s.plan.Status.PreservedData, version)
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
