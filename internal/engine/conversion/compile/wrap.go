// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"maps"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

func (c *compiler) addWrap(rule *v1alpha1.WrapRule, fldPath place) {
	p, ok := c.claimBoth(rule.From, rule.To, fldPath)
	if !ok {
		return
	}
	if rule.Field != "" {
		c.wrapElements(rule, fldPath, &p)
		return
	}
	one, list := p.spokeSchema, p.hubSchema
	ofHub := list.Items != nil
	if !ofHub {
		one, list = list, one
	}
	switch {
	case one.Items != nil || list.Items == nil:
		c.invalid(fldPath.Child("to"), rule.To, "is of type %s, and %s of type %s: one of them is a list, and the other one of its elements",
			typeName(p.hubSchema), rule.From, typeName(p.spokeSchema))
		return
	case difference(one, list.Items, nil) != "":
		c.invalid(fldPath.Child("to"), rule.To, "cannot be wrapped with %s: %s: the list's elements are of the value's type",
			rule.From, difference(one, list.Items, nil))
		return
	}
	exchange := p.exchange()
	exchange.Wrap = &conversion.Wrap{Hub: ofHub}
	p.scope.Exchanges = append(p.scope.Exchanges, exchange)
}

// wrapElements compiles a wrap of every element of a list, or of every value of a map.
func (c *compiler) wrapElements(rule *v1alpha1.WrapRule, fldPath place, p *pairing) {
	spoke, hub := elementsOf(p.spokeSchema), elementsOf(p.hubSchema)
	if spoke == nil || hub == nil || p.spokeSchema.Type != p.hubSchema.Type {
		c.invalid(fldPath.Child("to"), rule.To, "is of type %s, and %s of type %s: with field, both are lists or both are maps (additionalProperties)",
			typeName(p.hubSchema), rule.From, typeName(p.spokeSchema))
		return
	}
	ofHub := hasValues(hub, rule.Field, spoke)
	if !ofHub && !hasValues(spoke, rule.Field, hub) {
		c.invalid(fldPath.Child("field"), rule.Field, "is no field of objects with the type of the other version's values: %s has %s, and %s has %s",
			rule.From, elementText(spoke), rule.To, elementText(hub))
		return
	}
	exchange := p.exchange()
	exchange.Wrap = &conversion.Wrap{Hub: ofHub, Field: rule.Field}
	p.scope.Exchanges = append(p.scope.Exchanges, exchange)
}

// hasValues reports whether objects have a field of the same type as the values.
func hasValues(objects *schema.Structural, name string, values *schema.Structural) bool {
	own, found := objects.Properties[name]
	return found && difference(&own, values, nil) == ""
}

// elementText names the elements of a list or map.
func elementText(s *schema.Structural) string {
	if isStruct(s) && len(s.Properties) > 0 {
		return "objects with the fields " + few(slices.Sorted(maps.Keys(s.Properties)))
	}
	return "values of type " + typeName(s)
}
