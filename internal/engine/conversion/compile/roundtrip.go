// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// mayLeaveOut reports whether a rule has values of the hub, or of the spoke, that it maps to no
// value at all.
func (c *compiler) mayLeaveOut(rule *policyRule, ofHub bool) bool {
	if rule.leavesOut != nil {
		return rule.leavesOut(c, rule, ofHub)
	}
	return rule.stays(c, rule, ofHub)
}

// eachNotRoundTrippable: a part of a list may have no place in the other version.
func (c *compiler) eachNotRoundTrippable(rule *policyRule, ofHub bool) bool {
	f := c.frameOf(rule)
	return f == nil || f.mayStay(ofHub)
}

func (c *compiler) eachLeavesOut(rule *policyRule, ofHub bool) bool {
	f := c.frameOf(rule)
	return f == nil || f.mayStayWhole(ofHub)
}

// celNotRoundTrippable: nothing is known of expressions, except that what is derived is not preserved.
func celNotRoundTrippable(_ *compiler, rule *policyRule, _ bool) bool { return !rule.derives() }

// castLeavesOut: of the values in a document, only what is too large for a text is left out.
func (c *compiler) castLeavesOut(rule *policyRule, ofHub bool) bool {
	if s := c.schemaOf(rule, ofHub); isDocument(rule.Cast.As) {
		return s == nil || s.Type == "string"
	}
	return c.castNotRoundTrippable(rule, ofHub)
}

// schemaOf returns the schema of the field that a rule claims on one side, nil if there is none.
func (c *compiler) schemaOf(rule *policyRule, ofHub bool) *schema.Structural {
	for _, claim := range c.claimsOf(rule, ofHub) {
		own, _ := claim.in.sides(ofHub)
		found, _ := own.resolve(claim.path)
		return found
	}
	return nil
}

// tableNotRoundTrippable: a value may not come back through the table. Without an enum, any string
// or integer is possible.
func (c *compiler) tableNotRoundTrippable(rule *policyRule, ofHub bool) bool {
	values := valuesIn(c.schemaOf(rule, ofHub))
	if values == nil || c.tableLeavesOut(rule, ofHub) {
		return true
	}
	for _, value := range values {
		if translated(rule.Values.Table, translated(rule.Values.Table, value, ofHub), !ofHub) != value {
			return true
		}
	}
	return false
}

// tableLeavesOut reports whether a table between fields of different types lacks a value that the
// hub, or the spoke, may have.
func (c *compiler) tableLeavesOut(rule *policyRule, ofHub bool) bool {
	own, other := c.schemaOf(rule, ofHub), c.schemaOf(rule, !ofHub)
	if own == nil || other == nil || own.Type == other.Type {
		return false
	}
	values := valuesIn(own)
	return values == nil || slices.ContainsFunc(values, func(value string) bool {
		return !slices.ContainsFunc(rule.Values.Table, func(pair v1alpha1.ValuePair) bool { return ofHub && pair.To == value || !ofHub && pair.From == value })
	})
}

// valuesIn returns the values that a schema allows, as tables write them, nil if they are not
// limited.
func valuesIn(s *schema.Structural) []string {
	if s == nil || s.Type == "string" || s.ValueValidation == nil && s.Type != "boolean" {
		return enumOf(s)
	}
	values := asJSON(validationOf(s).Enum)
	if values == nil && s.Type == "boolean" {
		return []string{"true", "false"}
	}
	return values
}

// translated returns what a table makes of a value of the hub, or of the spoke.
func translated(table []v1alpha1.ValuePair, value string, ofHub bool) string {
	for _, pair := range table {
		if ofHub && pair.To == value {
			return pair.From
		}
		if !ofHub && pair.From == value {
			return pair.To
		}
	}
	return value
}

// enumOf returns the strings that a schema allows, nil if it allows any.
func enumOf(s *schema.Structural) []string {
	if s == nil || s.ValueValidation == nil {
		return nil
	}
	var values []string
	for _, allowed := range s.ValueValidation.Enum {
		if text, ok := allowed.Object.(string); ok {
			values = append(values, text)
		}
	}
	return values
}

// castNotRoundTrippable: a text may not be a canonical integer, and an integer may be out of range,
// because integers in JSON have any size. A number may be written in another form, a string in a
// list may contain the separator, and an object may be too large for a text.
func (c *compiler) castNotRoundTrippable(rule *policyRule, ofHub bool) bool {
	s := c.schemaOf(rule, ofHub)
	if s != nil && s.Type == "boolean" {
		return false
	}
	if s == nil || s.Type != "integer" || s.ValueValidation == nil {
		return true
	}
	validation, limit := s.ValueValidation, float64(1<<53)
	switch rule.Cast.As {
	case v1alpha1.CastTimestamp:
		limit = float64(conversion.MaxCastTimestamp)
	case v1alpha1.CastSeconds:
		limit = float64(conversion.MaxCastSeconds)
	case v1alpha1.CastMilliseconds:
		limit = float64(conversion.MaxCastSeconds) * 1000
	case v1alpha1.CastQuantity:
		limit = 1 << 20 // with each unit, a quantity of the API can be as much
	}
	return validation.Minimum == nil || *validation.Minimum < -limit || validation.Maximum == nil || *validation.Maximum > limit
}
