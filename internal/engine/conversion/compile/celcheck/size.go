// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package celcheck

import (
	"math"
	"math/bits"

	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/expression"
)

// sizeEstimator implements checker.CostEstimator with the maximum sizes of values. Values that an expression derives from
// fields have no path, and so no size of their own: texts are assumed to be as long as the longest text of the fields, and
// lists and maps as large as all fields together.
type sizeEstimator struct {
	self           *apiservercel.DeclType
	longest, total uint64
}

func newSizeEstimator(self *apiservercel.DeclType) *sizeEstimator {
	return &sizeEstimator{self, max(longestText(self), longestText(expression.MetadataType)), totalSize(self)}
}

// EstimateSize returns the size of a value.
func (e *sizeEstimator) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	if path := element.Path(); len(path) > 0 && (path[0] == expression.Self || path[0] == expression.Metadata) {
		current := e.self
		if path[0] == expression.Metadata {
			current = expression.MetadataType
		}
		for _, name := range path[1:] {
			current = memberType(current, name)
		}
		if current != nil {
			return &checker.SizeEstimate{Max: sizeOf(current)}
		}
	}
	switch element.Type().Kind() {
	case types.TypeKind:
		return &checker.SizeEstimate{Max: 1} // type(x) == int compares two names
	case types.StringKind, types.BytesKind, types.DynKind:
		return &checker.SizeEstimate{Max: e.longest}
	case types.ListKind, types.MapKind, types.StructKind, types.OpaqueKind:
		return &checker.SizeEstimate{Max: e.total}
	}
	return nil // the library knows the sizes of all other values
}

// EstimateCallCost implements checker.CostEstimator. The libraries know the costs of their calls.
func (e *sizeEstimator) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

// totalSize returns the size of a value with everything in it.
func totalSize(t *apiservercel.DeclType) uint64 {
	size := sizeOf(t)
	switch {
	case t.IsList() || t.IsMap():
		size = times(size, max(totalSize(t.ElemType), 1))
	case t.IsObject():
		for _, field := range t.Fields {
			size = plus(size, totalSize(field.Type))
		}
	}
	return size
}

// longestText returns the size of the longest text in a value.
func longestText(t *apiservercel.DeclType) (longest uint64) {
	switch {
	case t.IsList() || t.IsMap():
		return longestText(t.ElemType)
	case t.IsObject():
		for _, field := range t.Fields {
			longest = max(longest, longestText(field.Type))
		}
		return longest
	}
	return sizeOf(t)
}

// memberType returns the type of a part of a value, nil if it is unknown.
func memberType(parent *apiservercel.DeclType, name string) *apiservercel.DeclType {
	if parent == nil {
		return nil
	}
	switch name {
	case "@items", "@values":
		return parent.ElemType
	case "@keys":
		return parent.KeyType
	}
	field, found := parent.Fields[name]
	if !found {
		escaped, _ := apiservercel.Escape(name)
		if field, found = parent.Fields[escaped]; !found {
			return nil
		}
	}
	return field.Type
}

func sizeOf(t *apiservercel.DeclType) uint64 { return uint64(max(t.MaxElements, 0)) }

// times and plus saturate at the largest number.
func times(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	if high > 0 {
		return math.MaxUint64
	}
	return low
}

func plus(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry > 0 {
		return math.MaxUint64
	}
	return sum
}
