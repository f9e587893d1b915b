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

func (c *compiler) addIndex(rule *v1alpha1.IndexRule, fldPath place) {
	p, ok := c.claimBoth(rule.From, rule.To, fldPath)
	if !ok {
		return
	}
	list, mapSchema := p.spokeSchema, p.hubSchema
	ofHub := list.Items == nil
	if ofHub {
		list, mapSchema = mapSchema, list
	}
	if list.Items == nil || valuesOf(mapSchema) == nil {
		c.invalid(fldPath.Child("to"), rule.To, "is of type %s, and %s of type %s: one of them is a list of objects, and the other a map of objects (additionalProperties)",
			typeName(p.hubSchema), rule.From, typeName(p.spokeSchema))
		return
	}
	key, found := list.Items.Properties[rule.Key]
	switch _, inMap := valuesOf(mapSchema).Properties[rule.Key]; {
	case !found || key.Type != "string" && key.Type != "integer" || key.XIntOrString:
		c.invalid(fldPath.Child("key"), rule.Key, "is no field of the list's objects that is a string or an integer: they have %v",
			slices.Sorted(maps.Keys(list.Items.Properties)))
		return
	case rule.Value == rule.Key:
		c.invalid(fldPath.Child("value"), rule.Value, "is the key: name the field that has the value, or remove it")
		return
	case rule.Value != "" && !hasValues(list.Items, rule.Value, valuesOf(mapSchema)):
		c.invalid(fldPath.Child("value"), rule.Value, "is no field of the list's objects with the type of the map's values: the list has %s, and the map %s",
			elementText(list.Items), elementText(valuesOf(mapSchema)))
		return
	case rule.Value != "":
	case inMap:
		c.invalid(fldPath.Child("key"), rule.Key, "is a field of the map's objects too: they are known by their keys in the map, remove it from that version's schema")
		return
	}
	if differs := difference(without(list.Items, rule.Key), valuesOf(mapSchema), nil); rule.Value == "" && differs != "" {
		c.invalid(fldPath.Child("to"), rule.To, "cannot be indexed from %s: %s: but for the key, the objects are of the same type", rule.From, differs)
		return
	}
	exchange := p.exchange()
	exchange.Index = &conversion.Index{Hub: ofHub, Key: rule.Key, Integer: key.Type == "integer", Value: rule.Value}
	p.scope.Exchanges = append(p.scope.Exchanges, exchange)
}

// without returns a copy of an object's schema that lacks a field.
func without(s *schema.Structural, name string) *schema.Structural {
	rest := *s
	rest.Properties = maps.Clone(s.Properties)
	delete(rest.Properties, name)
	return &rest
}
