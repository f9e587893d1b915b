// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// losesNull reports whether the API server would remove a null of one side on the other side.
//
// It removes nulls from fields that are not nullable and have no default
// (k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting,
// PruneNonNullableNullsWithoutDefaults), also from the result of a conversion. So a null that only
// one side allows is preserved.
func losesNull(from, to *schema.Structural) bool {
	return from.Nullable && !to.Nullable && to.Default.Object == nil
}

// pairNulls decides about a field that is the same on both sides except for nulls.
func (c *compiler) pairNulls(cur cursor, spoke, hub *schema.Structural) {
	if !nullsDiffer(spoke, hub) {
		return
	}
	if shape, _ := intersect(spoke, hub); shape != nil && losesNulls(shape.Each) && len(cur.local) > 0 {
		c.pairShape(cur, spoke, hub, shape) // the values of a map lose nulls
		return
	}
	c.preserveNulls(cur, spoke, hub)
	switch {
	case isStruct(spoke) && isStruct(hub):
		c.pairFields(cur, spoke, hub)
	case sameElements(spoke, hub) && nullsDiffer(elementsOf(spoke), elementsOf(hub)):
		c.pairElements(cur, spoke, hub)
	}
}

// preserveNulls preserves a null that only one side allows. The side that does not allow nulls may
// still have one that was stored before its schema changed.
func (c *compiler) preserveNulls(cur cursor, spoke, hub *schema.Structural) {
	if len(cur.local) == 0 {
		return // the API server removes no elements from lists
	}
	if losesNull(spoke, hub) || losesNull(hub, spoke) {
		c.noteNotRoundTrippable(cur, spoke, hub)
		for _, ofSpoke := range []bool{true, false} {
			c.addLeaf(cur, ofSpoke, conversion.LeafField{Path: cur.local, Anchor: cur.anchor, Null: true})
		}
	}
}

// losesNulls reports whether a value of the shape, or a value in it, must not be null.
func losesNulls(s *conversion.Common) bool { return s != nil && (s.NotNull || losesNulls(s.Each)) }

// nullsDiffer reports whether a null could be lost anywhere in two values of the same shape.
func nullsDiffer(a, b *schema.Structural) bool {
	if losesNull(a, b) || losesNull(b, a) {
		return true
	}
	if left, right := elementsOf(a), elementsOf(b); left != nil && right != nil {
		return nullsDiffer(left, right)
	}
	for name := range a.Properties {
		left, right := a.Properties[name], b.Properties[name]
		if nullsDiffer(&left, &right) {
			return true
		}
	}
	return false
}

// markNulls sets NullAnchor and NotNull of all fields in a scope.
func (c *compiler) markNulls(scope *conversion.Scope, above conversion.Path) {
	for i := range scope.OnlySpoke {
		leaf := &scope.OnlySpoke[i]
		leaf.NullAnchor = nullable(c.hub, above, leaf.Path[:leaf.Anchor])
	}
	for i := range scope.OnlyHub {
		leaf := &scope.OnlyHub[i]
		leaf.NullAnchor = nullable(c.spoke, above, leaf.Path[:leaf.Anchor])
	}
	for i := range scope.Defaults {
		_, other := c.sides(scope.Defaults[i].Hub)
		scope.Defaults[i].NullAnchor = nullable(other.schema, above, scope.Defaults[i].Path[:scope.Defaults[i].Anchor])
	}
	for _, exchange := range slices.Concat(scope.Exchanges, scope.Derived) {
		wrap := exchange.Wrap != nil && exchange.Wrap.Field == ""
		markNullFields(above, exchange.Spoke, c.spoke, exchange.Hub, c.hub, wrap)
		markNullFields(above, exchange.Hub, c.hub, exchange.Spoke, c.spoke, wrap)
	}
	for i := range scope.Collections {
		collection := &scope.Collections[i]
		c.markNulls(&collection.Scope, collection.Inside(slices.Concat(above, collection.Path)))
	}
}

// markNullFields sets NullAnchor and NotNull of a rule's fields on one side. A field is NotNull if
// the other side may have a null that this side does not allow. A wrapped value is never made null:
// the elements of a list may be null even if its schema does not say so, as the API server removes no
// elements.
func markNullFields(above conversion.Path, fields []conversion.Field, own *schema.Structural, others []conversion.Field, other *schema.Structural, wrap bool) {
	otherNullable := slices.ContainsFunc(others, func(f conversion.Field) bool { return nullable(other, above, f.Path) })
	for i := range fields {
		fields[i].NullAnchor = nullable(other, above, fields[i].Path[:fields[i].Anchor])
		found, err := resolve(own, slices.Concat(above, fields[i].Path))
		fields[i].NotNull = err == nil && !found.Nullable && found.Default.Object == nil &&
			(otherNullable || wrap && found.Items == nil)
	}
}

// nullable reports whether a field may be null.
func nullable(root *schema.Structural, above, local conversion.Path) bool {
	full := slices.Concat(above, local)
	if len(full) == 0 {
		return root.Nullable
	}
	found, err := resolve(root, full)
	return err == nil && found.Nullable
}
