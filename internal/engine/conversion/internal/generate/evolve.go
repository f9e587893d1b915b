// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"maps"
	"slices"
)

// Evolved returns the schemas of two versions some time later: one has gained fields that only the
// other had, lists have gained keys, or the schemas have changed in another way.
func (c *Choices) Evolved(a, b *props) (*props, *props) {
	a, b = a.DeepCopy(), b.DeepCopy()
	for range 1 + c.IntN(3) {
		switch c.IntN(5) {
		case 0:
			a = c.Changed(a)
		case 1:
			b = c.Changed(b)
		case 2:
			c.addFields(a, b)
		case 3:
			c.addFields(b, a)
		default:
			c.addKeys(a, b)
		}
	}
	return a, b
}

// addFields gives a schema some of the fields of another schema.
func (c *Choices) addFields(s, from *props) {
	if s.Items != nil && from.Items != nil {
		c.addFields(s.Items.Schema, from.Items.Schema)
	}
	if s.AdditionalProperties != nil && from.AdditionalProperties != nil {
		c.addFields(s.AdditionalProperties.Schema, from.AdditionalProperties.Schema)
	}
	for _, name := range slices.Sorted(maps.Keys(from.Properties)) {
		field, found := s.Properties[name]
		switch {
		case found:
			other := from.Properties[name]
			c.addFields(&field, &other)
			s.Properties[name] = field
		case s.Properties != nil && c.IntN(2) == 0:
			field = from.Properties[name]
			s.Properties[name] = *field.DeepCopy()
		}
	}
}

// addKeys adds keys to the lists that two schemas have in common.
func (c *Choices) addKeys(a, b *props) {
	for _, name := range slices.Sorted(maps.Keys(a.Properties)) {
		left, right := a.Properties[name], b.Properties[name]
		if left.Items != nil && right.Items != nil && left.XListType == nil && right.XListType == nil {
			element, other := left.Items.Schema.Properties["name"], right.Items.Schema.Properties["name"]
			if element.Type != "" && element.Type == other.Type {
				for _, list := range []*props{&left, &right} {
					list.XListType, list.XListMapKeys = new("map"), []string{"name"}
					list.Items.Schema.Required = []string{"name"}
				}
			}
		}
		c.addKeys(&left, &right)
		a.Properties[name] = left
		if _, both := b.Properties[name]; both {
			b.Properties[name] = right
		}
	}
}
