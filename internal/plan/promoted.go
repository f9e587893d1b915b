// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
)

// storageVersionPromoted: objects are written in spec.storageVersion. The gates
// before this one have proven that they convert to that version and back. What
// was known of stored objects holds no more after that: the migration follows.
func storageVersionPromoted(s *state) outcome {
	wanted, storage := string(s.Policy.Spec.StorageVersion), crds.StorageVersion(s.CRD)
	if wanted == "" || wanted == storage || s.isAhead(wanted) {
		return outcome{}
	}
	if why := s.refusal(wanted); why != "" {
		return stalled(v1alpha1.ReasonPromotionRefused, fmt.Sprintf("spec.storageVersion is %s, and objects are written in %s: %s", wanted, storage, why))
	}
	return s.editVersions(v1alpha1.ReasonPromoting, fmt.Sprintf("making %s the storage version instead of %s", wanted, storage),
		s.change(storage, "storage", false), s.change(wanted, "storage", true))
}

// isAhead reports that the rules speak of the version, and the
// CustomResourceDefinition is to have it later.
func (s *state) isAhead(version string) bool {
	there, _ := crds.Version(s.CRD, version)
	return there == nil && slices.Contains(s.ruled(), version)
}

// refusal says why a version cannot be the storage version, and what to do.
func (s *state) refusal(wanted string) string {
	version, _ := crds.Version(s.CRD, wanted)
	switch {
	case version == nil:
		return fmt.Sprintf("the CustomResourceDefinition has %s: add the version there, or correct the name", strings.Join(s.names(), ", "))
	case !version.Served:
		return fmt.Sprintf("%s is not served, so that objects could not be rewritten in it: set served: true for it", wanted)
	case s.Policy.Spec.Converter.Declarative != nil && !slices.Contains(s.ruled(), wanted):
		return fmt.Sprintf("%s is neither hub nor spoke in spec.converter.declarative: write rules for it, if only an empty list", wanted)
	case s.none():
		return s.lossAs(wanted)
	case version.Subresources != nil && version.Subresources.Scale != nil:
		return s.noRoomAt(wanted)
	}
	return ""
}

// noRoomAt says which object could not be read any more, if objects were stored at a
// version with a scale: nothing is shortened to that, as who scales writes an object
// that admission does not see.
func (s *state) noRoomAt(version string) string {
	for _, row := range s.oversized() {
		if row.Version == version && s.limitsSize() {
			return fmt.Sprintf("object %s has no room at %s for %s of %s, and could not be read at either version: make these fields smaller",
				row.Object, version, cut(strings.Join(row.Fields, ", ")), row.FieldsOf)
		}
	}
	return ""
}

// lossAs says what would be lost without a converter if objects were written in
// the version.
func (s *state) lossAs(storage string) string {
	lost, _, errors := s.losses(storage)
	if len(errors) > 0 {
		return describe(errors)
	}
	if len(lost) > 0 {
		return "without a converter fields would be lost: " + firstOf(lost, maxErrors)
	}
	return ""
}

// ruled are the versions that the rules name.
func (s *state) ruled() []string {
	declarative := s.Policy.Spec.Converter.Declarative
	if declarative == nil {
		return nil
	}
	versions := []string{string(declarative.Hub)}
	for _, spoke := range declarative.Spokes {
		versions = append(versions, string(spoke.Version))
	}
	return versions
}

// names are the versions of the CustomResourceDefinition, as clients prefer them.
func (s *state) names() []string {
	var names []string
	for _, version := range crds.ByPriority(s.CRD) {
		names = append(names, version.Name)
	}
	return names
}

// notePromotion remembers that the wanted storage version was reached: what is
// seen without it later was taken back by somebody.
func (s *state) notePromotion() {
	wanted, known := string(s.Policy.Spec.StorageVersion), s.plan.Status.Promotion
	if s.CRD == nil || known != nil && (known.CRDUID != s.CRD.UID || known.Version != wanted) {
		s.plan.Status.Promotion, known = nil, nil
	}
	if s.CRD == nil || wanted == "" {
		return
	}
	switch reached := crds.StorageVersion(s.CRD) == wanted; {
	case reached && known == nil:
		s.gaveIn()
		s.plan.Status.Promotion = &v1alpha1.PromotionStatus{Version: wanted, CRDUID: s.CRD.UID, Time: *s.second()}
	case !reached && known != nil:
		s.plan.Status.Promotion = nil
		s.takenBack = append(s.takenBack, "made "+crds.StorageVersion(s.CRD)+" the storage version instead of "+wanted)
	}
}
