// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"encoding/json"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// notRoundTrippable reports whether a rule preserves some values of a side because it cannot
// express them on the other side.
func (c *compiler) notRoundTrippable(rule *policyRule, ofHub bool) bool {
	switch {
	case rule.drops(), rule.Default != nil:
		return false
	case rule.Move != nil:
		return c.moveNotRoundTrippable(rule, ofHub)
	case rule.Values != nil:
		return c.tableNotRoundTrippable(rule.Values, ofHub)
	case rule.Wrap != nil:
		return c.wrapNotRoundTrippable(rule.Wrap, ofHub)
	case rule.Cast != nil:
		return c.castNotRoundTrippable(rule.Cast, ofHub)
	case rule.Index != nil:
		return c.indexNotRoundTrippable(rule.Index, ofHub)
	}
	return true
}

// wrapNotRoundTrippable: a list may not have exactly one element. Of several values, one may be null,
// and an object may have other fields.
func (c *compiler) wrapNotRoundTrippable(rule *v1alpha1.WrapRule, ofHub bool) bool {
	s := c.schemaAt(rule.From, rule.To, ofHub)
	if rule.Field == "" {
		return s != nil && s.Items != nil && !isOneItem(s)
	}
	elements, others := elementsOf(s), elementsOf(c.schemaAt(rule.From, rule.To, !ofHub))
	return c.wrapLeavesOut(rule, ofHub) ||
		hasValues(elements, rule.Field, others) && (len(elements.Properties) > 1 || holdsAnything(elements))
}

// wrapLeavesOut reports whether one of several values may be null, or an object may lack its value.
func (c *compiler) wrapLeavesOut(rule *v1alpha1.WrapRule, ofHub bool) bool {
	elements, others := elementsOf(c.schemaAt(rule.From, rule.To, ofHub)), elementsOf(c.schemaAt(rule.From, rule.To, !ofHub))
	return elements.Nullable || hasValues(elements, rule.Field, others) && mayLackValue(elements, rule.Field)
}

// mayLackValue reports whether an object may have no value, or a null, in a field.
func mayLackValue(object *schema.Structural, name string) bool {
	return !isAlwaysSet(object, name) || object.Properties[name].Nullable
}

// indexNotRoundTrippable: a list may be unsorted. A map may have a name that is not an integer
// although the key is one, a null, or a field that its schema does not name, which may be the key.
func (c *compiler) indexNotRoundTrippable(rule *v1alpha1.IndexRule, ofHub bool) bool {
	values := valuesOf(c.schemaAt(rule.From, rule.To, ofHub))
	list := c.schemaAt(rule.From, rule.To, !ofHub)
	if values == nil || list.Items == nil {
		return true
	}
	return list.Items.Properties[rule.Key].Type != "string" || values.Nullable || rule.Value == "" && holdsAnything(values)
}

// mayLeaveOut reports whether a rule has values of the hub, or of the spoke, that it maps to no
// value at all.
func (c *compiler) mayLeaveOut(rule *policyRule, ofHub bool) bool {
	switch {
	case rule.Values != nil:
		return c.tableLeavesOut(rule.Values, ofHub)
	case rule.Format != nil:
		return !ofHub
	case rule.Wrap != nil && rule.Wrap.Field != "":
		return c.wrapLeavesOut(rule.Wrap, ofHub)
	case rule.Cast != nil && isDocument(rule.Cast.As):
		s := c.schemaAt(rule.Cast.From, rule.Cast.To, ofHub)
		return s == nil || s.Type == "string" // of values, only what is too large for a text
	case rule.Index != nil:
		s := c.schemaAt(rule.Index.From, rule.Index.To, ofHub)
		if s.Items != nil {
			return !isListMap(s) || !slices.Equal(s.XListMapKeys, []string{rule.Index.Key}) || s.Items.Nullable ||
				rule.Index.Value != "" && mayLackValue(s.Items, rule.Index.Value)
		}
	}
	return c.notRoundTrippable(rule, ofHub)
}

// schemaAt returns the schema of a rule's field on one side, nil if there is none.
func (c *compiler) schemaAt(from, to v1alpha1.Path, ofHub bool) *schema.Structural {
	own, text := c.spokeOwn, from
	if ofHub {
		own, text = c.hub, to
	}
	path, err := conversion.ParsePath(string(text))
	if err != nil {
		return nil
	}
	found, err := resolve(own, path)
	if err != nil {
		return nil
	}
	return found
}

// tableNotRoundTrippable: a value may not come back through the table. Without an enum, any string
// or integer is possible.
func (c *compiler) tableNotRoundTrippable(rule *v1alpha1.ValuesRule, ofHub bool) bool {
	values := valuesIn(c.schemaAt(rule.From, rule.To, ofHub))
	if values == nil || c.tableLeavesOut(rule, ofHub) {
		return true
	}
	for _, value := range values {
		if translated(rule.Table, translated(rule.Table, value, ofHub), !ofHub) != value {
			return true
		}
	}
	return false
}

// tableLeavesOut reports whether a table between fields of different types lacks a value that the
// hub, or the spoke, may have.
func (c *compiler) tableLeavesOut(rule *v1alpha1.ValuesRule, ofHub bool) bool {
	own, other := c.schemaAt(rule.From, rule.To, ofHub), c.schemaAt(rule.From, rule.To, !ofHub)
	if own == nil || other == nil || own.Type == other.Type {
		return false
	}
	values := valuesIn(own)
	return values == nil || slices.ContainsFunc(values, func(value string) bool {
		return !slices.ContainsFunc(rule.Table, func(pair v1alpha1.ValuePair) bool { return ofHub && pair.To == value || !ofHub && pair.From == value })
	})
}

// valuesIn returns the values that a schema allows, as tables write them, nil if they are not
// limited.
func valuesIn(s *schema.Structural) []string {
	if s == nil || s.Type == "string" || s.ValueValidation == nil && s.Type != "boolean" {
		return enumOf(s)
	}
	var values []string
	for _, allowed := range validationOf(s).Enum {
		if text, err := json.Marshal(allowed.Object); err == nil {
			values = append(values, string(text))
		}
	}
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

// isOneItem reports whether a list always has exactly one element, which is not null.
func isOneItem(list *schema.Structural) bool {
	v := list.ValueValidation
	return v != nil && v.MinItems != nil && *v.MinItems == 1 && v.MaxItems != nil && *v.MaxItems == 1 && !list.Items.Nullable
}

// castNotRoundTrippable: a text may not be a canonical integer, and an integer may be out of range,
// because integers in JSON have any size. A number may be written in another form, a string in a
// list may contain the separator, and an object may be too large for a text.
func (c *compiler) castNotRoundTrippable(rule *v1alpha1.CastRule, ofHub bool) bool {
	s := c.schemaAt(rule.From, rule.To, ofHub)
	if s != nil && s.Type == "boolean" {
		return false
	}
	if s == nil || s.Type != "integer" || s.ValueValidation == nil {
		return true
	}
	validation, limit := s.ValueValidation, float64(1<<53)
	switch rule.As {
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
