// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// The API server takes nulls away from fields that are not nullable and have no
// default (k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting,
// PruneNonNullableNullsWithoutDefaults), also from what a conversion returns. So a
// null that only one side may have is preserved.

// losesNull reports whether a null of one side would be taken away on the other.
func losesNull(from, to *schema.Structural) bool {
	return from.Nullable && !to.Nullable && to.Default.Object == nil
}

// pairNulls decides about a field that is the same on both sides but for nulls.
func (c *compiler) pairNulls(at spot, spoke, hub *schema.Structural) {
	if !nullsDiffer(spoke, hub) {
		return
	}
	if shape, _ := meet(spoke, hub); shape != nil && losesNulls(shape.Each) && len(at.local) > 0 {
		c.pairShape(at, spoke, hub, shape) // the values of a map lose nulls
		return
	}
	c.keepNulls(at, spoke, hub)
	switch {
	case isStruct(spoke) && isStruct(hub):
		c.walk(at, spoke, hub)
	case sameElements(spoke, hub) && nullsDiffer(elementsOf(spoke), elementsOf(hub)):
		c.elements(at, spoke, hub)
	}
}

// keepNulls keeps a null of a field aside that only one side may have. The side
// that has no nulls may have one all the same, before that its schema.
func (c *compiler) keepNulls(at spot, spoke, hub *schema.Structural) {
	if len(at.local) == 0 {
		return // an element of a list, of which the API server takes none away
	}
	if losesNull(spoke, hub) || losesNull(hub, spoke) {
		c.noteNotRoundTrippable(at, spoke, hub)
		for _, ofSpoke := range []bool{true, false} {
			c.addLeaf(at, ofSpoke, conversion.LeafField{Path: at.local, Anchor: at.anchor, Null: true})
		}
	}
}

// losesNulls reports whether a value of the shape, or one in it, must not be null.
func losesNulls(s *conversion.Common) bool { return s != nil && (s.NotNull || losesNulls(s.Each)) }

// nullsDiffer reports whether a null is lost somewhere in a value of one type.
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

// markNulls tells the fields of a scope what a null is on the other side.
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
	for _, exchange := range scope.Exchanges {
		wrap := exchange.Wrap != nil
		markNullFields(above, exchange.Spoke, c.spoke, exchange.Hub, c.hub, wrap)
		markNullFields(above, exchange.Hub, c.hub, exchange.Spoke, c.spoke, wrap)
	}
	for i := range scope.Collections {
		collection := &scope.Collections[i]
		c.markNulls(&collection.Scope, slices.Concat(above, collection.Path, conversion.Path{conversion.Each}))
	}
}

// markNullFields tells the fields of a rule on one side. If a null may come and
// is not allowed, none is made. An object that is wrapped is never made null: that
// null would be one of an emptied object, which is opened for what is preserved in it,
// and an object is an element where the null was of a list.
func markNullFields(above conversion.Path, fields []conversion.Field, own *schema.Structural, others []conversion.Field, other *schema.Structural, wrap bool) {
	comes := slices.ContainsFunc(others, func(f conversion.Field) bool { return nullable(other, above, f.Path) })
	for i := range fields {
		fields[i].NullAnchor = nullable(other, above, fields[i].Path[:fields[i].Anchor])
		found, err := resolve(own, slices.Concat(above, fields[i].Path))
		fields[i].NotNull = err == nil && !found.Nullable && found.Default.Object == nil &&
			(comes || wrap && found.Type == "object")
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
