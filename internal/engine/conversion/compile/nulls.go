// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
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
func (f *frame) pairNulls(cur cursor, spoke, hub *schema.Structural) {
	if !nullsDiffer(spoke, hub) {
		return
	}
	if shape, _ := intersect(spoke, hub); shape != nil && losesNulls(shape.Each) && len(cur.local) > 0 {
		f.pairShape(cur, spoke, hub, shape) // the values of a map lose nulls
		return
	}
	f.preserveNulls(cur, spoke, hub)
	switch {
	case isStruct(spoke) && isStruct(hub):
		f.pairFields(cur, spoke, hub)
	case sameElements(spoke, hub) && nullsDiffer(elementsOf(spoke), elementsOf(hub)):
		f.pairElements(cur, spoke, hub)
	}
}

// preserveNulls preserves a null that only one side allows. The side that does not allow nulls may
// still have one that was stored before its schema changed.
func (f *frame) preserveNulls(cur cursor, spoke, hub *schema.Structural) {
	if len(cur.local) == 0 {
		return // the API server removes no elements from lists
	}
	if losesNull(spoke, hub) || losesNull(hub, spoke) {
		f.noteNotRoundTrippable(cur, spoke, hub)
		f.addSmall(f.hub.shown(cur.full))
		f.addLeaf(cur, f.spoke, conversion.LeafField{Path: cur.local, Null: true})
		f.addLeaf(cur, f.hub, conversion.LeafField{Path: cur.local, Null: true})
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
