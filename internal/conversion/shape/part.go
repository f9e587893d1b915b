// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/conversion/shape/internal/form"
)

// Part is the schema of a fragment of the value, such as server-side apply sends:
// whatever may be missing may be missing. What is there must be as the schema says.
func (s *Schema) Part() *Schema { return s.part() }

func (s *Schema) newPart() *Schema {
	part := newSchema(partOf(s.node))
	if s.element {
		part.ofList(s.preserve)
	}
	return part
}

// partOf takes away what a value must have. AnyOf, oneOf and not may ask for it, too.
func partOf(node *form.Node) *form.Node {
	if node == nil {
		return nil
	}
	if node.Embedded {
		node = embedded(node)
	}
	part := *node
	part.Embedded, part.Required, part.MinItems, part.MinMembers = false, nil, nil, nil
	part.AnyOf, part.OneOf, part.Not = nil, nil, nil
	part.Additional, part.Items = partOf(node.Additional), partOf(node.Items)
	part.AllOf = slices.Clone(node.AllOf)
	for i, each := range node.AllOf {
		part.AllOf[i] = partOf(each)
	}
	if node.Properties != nil {
		part.Properties = make(map[string]*form.Node, len(node.Properties))
	}
	for name, member := range node.Properties {
		part.Properties[name] = partOf(member)
	}
	return &part
}
