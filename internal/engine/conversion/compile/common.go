// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// anything is the schema of a value that an object holds without naming it. It may be null.
var anything = &schema.Structural{Generic: schema.Generic{Nullable: true}, Extensions: schema.Extensions{XPreserveUnknownFields: true}}

// isAnything reports whether a schema allows any value.
func isAnything(s *schema.Structural) bool {
	return s.XPreserveUnknownFields && s.Type == "" && !s.XIntOrString && !s.XEmbeddedResource &&
		s.Items == nil && s.AdditionalProperties == nil && len(s.Properties) == 0
}

// commonShape returns the shape of the values that both sides allow, if one side allows more. It is
// nil if they allow the same values, or neither allows all values of the other.
//
// The field is then the same for values of the common shape. Other values are preserved while the
// object is at the side that does not allow them. An example is an integer, and an integer or
// string.
func commonShape(a, b *schema.Structural) *conversion.Common {
	if shape, wider := intersect(a, b); wider {
		return shape
	}
	return nil
}

// commonScalar is commonShape for scalars. It is nil for anything else.
func commonScalar(a, b *schema.Structural) *conversion.Common {
	switch {
	case isWider(a, b):
		return &conversion.Common{Type: typeName(b)}
	case isWider(b, a):
		return &conversion.Common{Type: typeName(a)}
	}
	return nil
}

// isWider reports whether a schema allows all values of a scalar, and more.
func isWider(s, other *schema.Structural) bool {
	if isAnything(s) {
		return slices.Contains(scalars, typeName(other))
	}
	return typeName(s) != typeName(other) && narrower(typeName(s), typeName(other)) == typeName(other)
}

var scalars = []string{"string", "integer", "number", "boolean", conversion.IntOrString}

// intersect returns the shape of the values that two schemas have in common, not including the
// fields of objects; nil if they have none. It reports whether one of them allows more.
func intersect(a, b *schema.Structural) (shape *conversion.Common, wider bool) {
	shape = &conversion.Common{NotNull: losesNull(a, b) || losesNull(b, a)}
	switch {
	case isAnything(a) && isAnything(b):
		return shape, false
	case isAnything(a):
		a, wider = withStructureOf(a, b), true
	case isAnything(b):
		b, wider = withStructureOf(b, a), true
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
	each, more := intersect(left, right)
	if each == nil {
		return nil, false
	}
	each.NotNull = each.NotNull && a.Items == nil // the API server removes no elements from lists
	if *each != (conversion.Common{}) {
		shape.Each = each
	}
	return shape, wider || more
}

// narrower returns the type whose values the other type allows too, empty if neither does.
func narrower(a, b string) string {
	for _, types := range [][2]string{{a, b}, {b, a}} {
		switch types {
		case [2]string{a, a}, [2]string{"integer", conversion.IntOrString}, [2]string{"string", conversion.IntOrString}, [2]string{"integer", "number"}:
			return types[0]
		}
	}
	return ""
}

// withStructureOf gives a schema that allows anything the type of another schema, with fields or
// elements that allow anything. It returns any other schema unchanged.
func withStructureOf(s, other *schema.Structural) *schema.Structural {
	if !isAnything(s) {
		return s
	}
	result := &schema.Structural{Generic: schema.Generic{Nullable: s.Nullable, Type: other.Type}}
	switch {
	case other.Items != nil:
		result.Items = anything
	case valuesOf(other) != nil:
		result.AdditionalProperties = &schema.StructuralOrBool{Structural: anything}
	case isStruct(other):
		result.XPreserveUnknownFields = true
	default:
		result.XIntOrString = other.XIntOrString
	}
	return result
}

// withNestedStructureOf is withStructureOf, applied to the elements of lists and maps too.
func withNestedStructureOf(s, other *schema.Structural) *schema.Structural {
	elements := elementsOf(other)
	if s = withStructureOf(s, other); elements == nil || elementsOf(s) == nil {
		return s
	}
	inner, result := withNestedStructureOf(elementsOf(s), elements), *s
	if s.Items != nil {
		result.Items = inner
	} else {
		result.AdditionalProperties = &schema.StructuralOrBool{Structural: inner}
	}
	return &result
}

// pairShape decides about a field of which one side allows more. Fields in it are paired as far as
// they have the common shape.
func (f *frame) pairShape(cur cursor, spoke, hub *schema.Structural, shape *conversion.Common) {
	if len(cur.local) > 0 {
		f.addLeaf(cur, f.spoke, conversion.LeafField{Path: cur.local, Common: shape})
		f.addLeaf(cur, f.hub, conversion.LeafField{Path: cur.local, Common: shape})
	}
	f.noteNotRoundTrippable(cur, spoke, hub)
	spoke, hub = withNestedStructureOf(spoke, hub), withNestedStructureOf(hub, spoke)
	switch {
	case isStruct(spoke) && isStruct(hub):
		f.pairFields(cur, spoke, hub)
	case sameElements(spoke, hub):
		f.pairElements(cur, spoke, hub)
	}
}

// noteNotRoundTrippable records for the verdict which side has values that the other cannot have. A
// field that one side allows without naming it counts as preserved, since users do not expect the
// API server to prune it.
func (f *frame) noteNotRoundTrippable(cur cursor, spoke, hub *schema.Structural) {
	f.spoke.noteNotRoundTrippable(cur, spoke, hub)
	f.hub.noteNotRoundTrippable(cur, hub, spoke)
}

func (s *side) noteNotRoundTrippable(cur cursor, own, other *schema.Structural) {
	if !allowsMore(own, other) || s.preservedWithin(cur.full) {
		return
	}
	if isUntyped(own) && !isUntyped(other) {
		s.notePreserved(cur)
	}
	s.partlyPreserved = append(s.partlyPreserved, cur.full)
}

// preservedWithin reports whether a path is in a field with an untyped schema, which the verdict
// already covers as a whole.
func (s *side) preservedWithin(path conversion.Path) bool {
	return slices.ContainsFunc(s.preserved, func(preserved conversion.Path) bool {
		return path.HasPrefix(preserved) && contains(s.partlyPreserved, preserved)
	})
}

// allowsMore reports whether a schema allows values that the other does not.
func allowsMore(s, other *schema.Structural) bool {
	if losesNull(s, other) || isAnything(s) && !isAnything(other) || isWider(s, other) {
		return true
	}
	left, right := elementsOf(s), elementsOf(other)
	return left != nil && right != nil && allowsMore(left, right)
}

// isUntyped reports whether a schema, or that of its elements, allows anything.
func isUntyped(s *schema.Structural) bool {
	elements := elementsOf(s)
	return isAnything(s) || elements != nil && isUntyped(elements)
}

func contains(paths []conversion.Path, path conversion.Path) bool {
	return slices.ContainsFunc(paths, func(other conversion.Path) bool { return slices.Equal(path, other) })
}
