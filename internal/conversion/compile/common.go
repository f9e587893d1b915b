// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// A field of which one side allows more than the other, such as an integer and an
// integer or a string, is the same as far as its values are those of both. All other
// values are preserved while the object is at the side that cannot have them.

// anything is the schema of what an object may hold without naming it, be it null.
var anything = &schema.Structural{Generic: schema.Generic{Nullable: true}, Extensions: schema.Extensions{XPreserveUnknownFields: true}}

// isAnything reports whether a schema says nothing of a value.
func isAnything(s *schema.Structural) bool {
	return s.XPreserveUnknownFields && s.Type == "" && !s.XIntOrString && !s.XEmbeddedResource &&
		s.Items == nil && s.AdditionalProperties == nil && len(s.Properties) == 0
}

// commonShape is that of the values which both sides can hold, where one side allows
// more; nil where they allow the same, or neither allows all of the other's.
func commonShape(a, b *schema.Structural) *conversion.Common {
	if shape, wider := meet(a, b); wider {
		return shape
	}
	return nil
}

// commonScalar is the type of the values that two fields share of which one allows more,
// such as an integer and an integer or a string; nil where they are the same, share no
// values, or are no scalars.
func commonScalar(a, b *schema.Structural) *conversion.Common {
	if isWider(a, b) || isWider(b, a) {
		return &conversion.Common{Type: narrower(typeName(a), typeName(b))}
	}
	return nil
}

// isWider reports whether a scalar can have all values of another one, and more.
func isWider(s, other *schema.Structural) bool {
	return typeName(s) != typeName(other) && narrower(typeName(s), typeName(other)) == typeName(other)
}

// meet is the shape of the values of two schemas, down to the fields of objects, nil
// where there is none. It reports whether one of them allows more.
func meet(a, b *schema.Structural) (shape *conversion.Common, wider bool) {
	shape = &conversion.Common{NotNull: losesNull(a, b) || losesNull(b, a)}
	switch {
	case isAnything(a) && isAnything(b):
		return shape, false
	case isAnything(a):
		a, wider = opened(a, b), true
	case isAnything(b):
		b, wider = opened(b, a), true
	}
	if shape.Type = narrower(typeName(a), typeName(b)); shape.Type == "" || a.XEmbeddedResource != b.XEmbeddedResource {
		return nil, false
	}
	wider = wider || typeName(a) != typeName(b)
	left, right := elementsOf(a), elementsOf(b)
	switch {
	case left == nil && right == nil:
		if !isStruct(a) && holdsAnything(a) != holdsAnything(b) {
			return nil, false
		}
		return shape, wider
	case left == nil || right == nil || (a.Items == nil) != (b.Items == nil):
		return nil, false
	}
	each, more := meet(left, right)
	if each == nil {
		return nil, false
	}
	each.NotNull = each.NotNull && a.Items == nil // the API server takes no elements out of lists
	if *each != (conversion.Common{}) {
		shape.Each = each
	}
	return shape, wider || more
}

// narrower is the type whose values the other one has too, empty where there is none.
func narrower(a, b string) string {
	for _, types := range [][2]string{{a, b}, {b, a}} {
		switch types {
		case [2]string{a, a}, [2]string{"integer", conversion.IntOrString}, [2]string{"string", conversion.IntOrString}, [2]string{"integer", "number"}:
			return types[0]
		}
	}
	return ""
}

// opened is a schema that says nothing, as it stands beside another one: with fields,
// elements or a type as that has, of which it says nothing either.
func opened(s, other *schema.Structural) *schema.Structural {
	if !isAnything(s) {
		return s
	}
	beside := &schema.Structural{Generic: schema.Generic{Nullable: s.Nullable, Type: other.Type}}
	switch {
	case other.Items != nil:
		beside.Items = anything
	case valuesOf(other) != nil:
		beside.AdditionalProperties = &schema.StructuralOrBool{Structural: anything}
	case isStruct(other):
		beside.XPreserveUnknownFields = true
	default:
		beside.XIntOrString = other.XIntOrString
	}
	return beside
}

// openedAll is opened in the elements of lists and maps, too.
func openedAll(s, other *schema.Structural) *schema.Structural {
	elements := elementsOf(other)
	if s = opened(s, other); elements == nil || elementsOf(s) == nil {
		return s
	}
	inner, all := openedAll(elementsOf(s), elements), *s
	if s.Items != nil {
		all.Items = inner
	} else {
		all.AdditionalProperties = &schema.StructuralOrBool{Structural: inner}
	}
	return &all
}

// pairShape decides about a field of which one side allows more. What stands in it is
// paired as far as it is of the common shape.
func (c *compiler) pairShape(at spot, spoke, hub *schema.Structural, shape *conversion.Common) {
	if len(at.local) > 0 {
		for _, ofSpoke := range []bool{true, false} {
			c.addLeaf(at, ofSpoke, conversion.LeafField{Path: at.local, Anchor: at.anchor, Common: shape})
		}
	}
	c.noteNotRoundTrippable(at, spoke, hub)
	spoke, hub = openedAll(spoke, hub), openedAll(hub, spoke)
	switch {
	case isStruct(spoke) && isStruct(hub):
		c.walk(at, spoke, hub)
	case sameElements(spoke, hub):
		c.elements(at, spoke, hub)
	}
}

// noteNotRoundTrippable writes down for the verdict which side has values that the other cannot
// have. If one side does not name a field, no user expects that it is pruned, so it
// counts as preserved.
func (c *compiler) noteNotRoundTrippable(at spot, spoke, hub *schema.Structural) {
	for _, ofSpoke := range []bool{true, false} {
		own, other, odd := hub, spoke, &c.partlyPreservedHub
		if ofSpoke {
			own, other, odd = spoke, hub, &c.partlyPreservedSpoke
		}
		if !allowsMore(own, other) || c.preservedWithin(at.full, ofSpoke) {
			continue
		}
		if saysNothing(own) {
			c.notePreserved(at, ofSpoke)
		}
		*odd = append(*odd, at.full)
	}
}

// preservedWithin reports whether a path is in a field that one side says nothing of: the
// verdict has that as a whole.
func (c *compiler) preservedWithin(path conversion.Path, ofSpoke bool) bool {
	return slices.ContainsFunc(c.preserved(!ofSpoke), func(kept conversion.Path) bool { return path.HasPrefix(kept) && c.isPartlyPreserved(kept, !ofSpoke) })
}

// allowsMore reports whether a schema has values that the other one has not.
func allowsMore(s, other *schema.Structural) bool {
	if losesNull(s, other) || isAnything(s) && !isAnything(other) || isWider(s, other) {
		return true
	}
	left, right := elementsOf(s), elementsOf(other)
	return left != nil && right != nil && allowsMore(left, right)
}

// saysNothing reports whether a schema, or that of its elements, says nothing.
func saysNothing(s *schema.Structural) bool {
	elements := elementsOf(s)
	return isAnything(s) || elements != nil && saysNothing(elements)
}

// partlyPreserved are the fields of a side that have values which are preserved, without a rule.
func (c *compiler) partlyPreserved(ofHub bool) []conversion.Path {
	if ofHub {
		return c.partlyPreservedHub
	}
	return c.partlyPreservedSpoke
}

// isPartlyPreserved reports whether such a field is the one at a path.
func (c *compiler) isPartlyPreserved(path conversion.Path, ofHub bool) bool {
	return slices.ContainsFunc(c.partlyPreserved(ofHub), func(odd conversion.Path) bool { return slices.Equal(path, odd) })
}
