// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converter

import (
	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/crds"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
)

// LimitsSize reports that API servers must refuse objects that are too large to convert, and
// that conversions may therefore truncate existing ones.
func (c *Converter) LimitsSize() bool {
	return c.MayLimitSize() && c.Policy.Spec.Converter.Declarative.Overflow != v1alpha1.OverflowDrop
}

// MayLimitSize is LimitsSize without regard to the field overflow of the policy.
func (c *Converter) MayLimitSize() bool {
	return c.Settings.SizeAdmission && c.CRD != nil && c.Policy.Spec.Converter.Declarative != nil && c.Rules.AdmissionCondition != ""
}

// truncating is what the desired ruleset may truncate. If API servers refuse no large objects,
// it truncates nothing, and still refuses writes of truncated objects that clients read
// before. Another policy for the same CustomResourceDefinition must refuse them, too, so that
// the key depends on the CustomResourceDefinition only.
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
		// An update of the scale writes an object that admission webhooks do not see.
		if v := &c.CRD.Spec.Versions[i]; v.Name == storage && v.Subresources != nil && v.Subresources.Scale != nil {
			allowed.Except = []string{storage}
		}
	}
	return allowed
}
