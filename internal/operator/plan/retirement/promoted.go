// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package retirement

import (
	"fmt"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
)

// Promoted is a gate: the storage version is the desired one.
func (r *Retirement) Promoted() gate.Decision { return r.work.Decide(r.promoted()) }

// promoted makes spec.storageVersion the storage version. The gates before this one have
// proven that objects convert to that version and back. The migration follows, because
// stored objects are in another version after that.
func (r *Retirement) promoted() gate.Outcome {
	wanted, storage := string(r.Policy.Spec.StorageVersion), crds.StorageVersion(r.CRD)
	if wanted == "" || wanted == storage || r.isAhead(wanted) {
		return gate.Outcome{}
	}
	if why := r.refusal(wanted); why != "" {
		return gate.Stalled(v1alpha1.ReasonPromotionRefused, fmt.Sprintf("spec.storageVersion is %s, and objects are written in %s: %s", wanted, storage, why))
	}
	return r.editVersions(v1alpha1.ReasonPromoting, fmt.Sprintf("making %s the storage version instead of %s", wanted, storage),
		r.change(storage, "storage", false), r.change(wanted, "storage", true))
}

// isAhead reports that the rules have a version that the CustomResourceDefinition lacks yet.
func (r *Retirement) isAhead(version string) bool {
	there, _ := crds.Version(r.CRD, version)
	return there == nil && slices.Contains(r.ruled(), version)
}

// refusal says why a version cannot be the storage version, and what to do.
func (r *Retirement) refusal(wanted string) string {
	version, _ := crds.Version(r.CRD, wanted)
	switch {
	case version == nil:
		return fmt.Sprintf("the CustomResourceDefinition has %s: add the version there, or correct the name", strings.Join(r.versionNames(), ", "))
	case !version.Served:
		return fmt.Sprintf("%s is not served, so objects cannot be rewritten in it: set served: true for it", wanted)
	case r.Rulesets() && !slices.Contains(r.ruled(), wanted):
		return fmt.Sprintf("%s is neither hub nor spoke in spec.converter.declarative: write rules for it, if only an empty list", wanted)
	case r.None():
		return r.converter.LossAt(wanted)
	case crds.HasScale(version):
		return r.noRoomAt(wanted)
	}
	return ""
}

// noRoomAt names an object that would be unreadable if objects were stored at a version with a
// scale. Conversions do not truncate objects to such a version, because an update of the scale
// writes an object that admission webhooks do not see.
func (r *Retirement) noRoomAt(version string) string {
	for _, row := range r.oversized {
		if row.Version == version && r.converter.LimitsSize() {
			return fmt.Sprintf("object %s does not fit at %s with %s of %s, and would be unreadable at both versions: reduce these fields",
				row.Object, version, gate.Cut(strings.Join(row.Fields, ", ")), row.FieldsOf)
		}
	}
	return ""
}

// ruled are the versions that the rules name.
func (r *Retirement) ruled() []string {
	declarative := r.Policy.Spec.Converter.Declarative
	if declarative == nil {
		return nil
	}
	versions := []string{string(declarative.Hub)}
	for _, spoke := range declarative.Spokes {
		versions = append(versions, string(spoke.Version))
	}
	return versions
}

// versionNames are the versions of the CustomResourceDefinition, as clients prefer them.
func (r *Retirement) versionNames() []string {
	var names []string
	for _, version := range crds.ByPriority(r.CRD) {
		names = append(names, version.Name)
	}
	return names
}

// notePromotion records that the wanted storage version was reached. If another one is observed
// later, a client has reverted it.
func (r *Retirement) notePromotion() {
	wanted := string(r.Policy.Spec.StorageVersion)
	if r.CRD == nil || r.Status.PromotedVersion != wanted {
		r.Status.PromotedVersion = ""
	}
	if r.CRD == nil || wanted == "" {
		return
	}
	switch reached, known := crds.StorageVersion(r.CRD) == wanted, r.Status.PromotedVersion != ""; {
	case reached && !known:
		r.driftEnded()
		r.Status.PromotedVersion = wanted
	case !reached && known:
		r.Status.PromotedVersion = ""
		r.reverted = append(r.reverted, "made "+crds.StorageVersion(r.CRD)+" the storage version instead of "+wanted)
	}
}
