// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converter

import (
	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/crds"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
)

// LimitsSize tells that API servers are to refuse what could be read in a truncated
// form only, and that conversions may therefore truncate.
func (c *Converter) LimitsSize() bool {
	return c.MayLimitSize() && c.Policy.Spec.Converter.Declarative.Overflow != v1alpha1.OverflowDrop
}

// MayLimitSize is LimitsSize whatever is to become of what has no room.
func (c *Converter) MayLimitSize() bool {
	return c.Settings.SizeAdmission && c.CRD != nil && c.Policy.Spec.Converter.Declarative != nil && c.Rules.AdmissionCondition != ""
}

// truncating is what the wanted ruleset may truncate. If nothing is refused that is
// nothing, and truncated forms that readers got before are refused all the same: by
// those of a policy that takes the place of another one, too, so that the key is that
// of the CustomResourceDefinition.
func (c *Converter) truncating() *conversion.Truncating {
	if c.CRD == nil || c.Policy.Spec.Converter.Declarative == nil {
		return nil
	}
	allowed := &conversion.Truncating{Key: names.Hash("truncating", string(c.CRD.UID))}
	if !c.LimitsSize() {
		allowed.RefuseOnly = true
		return allowed
	}
	storage := crds.StorageVersion(c.CRD)
	for i := range c.CRD.Spec.Versions {
		// Who scales writes an object that admission does not see.
		if v := &c.CRD.Spec.Versions[i]; v.Name == storage && v.Subresources != nil && v.Subresources.Scale != nil {
			allowed.Except = []string{storage}
		}
	}
	return allowed
}
