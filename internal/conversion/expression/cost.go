// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"math"
	"math/bits"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/library"
)

const (
	// evaluationLimit is the most that one evaluation may cost: a tenth of what the
	// API server allows a validation rule (PerCallLimit). A unit takes about 100 ns,
	// and several times that in loops over thousands of elements.
	evaluationLimit = celconfig.PerCallLimit / 10
	// objectLimit is the most that an expression may cost for all elements of one
	// object: what the API server allows the match conditions of an admission
	// webhook, for they too are in the way of every request.
	objectLimit = celconfig.RuntimeCELCostBudgetMatchConditions

	// Estimates are for values that are at most so large, a text in characters, a
	// list or map in elements, or less where the schema says so. The API server
	// estimates for values as large as a request, and so refuses most expressions
	// over what has no bounds. Here a value that is too large for its expression
	// does no harm: the evaluation ends at its limit, and the value is set aside.
	assumedLength = 128
	assumedItems  = 128
)

// checkCost estimates the cost, which is to be well below the limit of an evaluation.
func (s *side) checkCost(compiled *cel.Ast, from []Field, elements uint64) error {
	estimate, err := s.env.EstimateCost(compiled, &library.CostEstimator{SizeEstimator: &sizes{s.self}})
	if err != nil {
		return &CompileError{Messages: []string{"its cost cannot be estimated: " + err.Error()}}
	}
	failed := &CostError{Estimate: estimate.Max, Limit: min(evaluationLimit, objectLimit/max(elements, 1)), Elements: elements}
	if estimate.Max <= failed.Limit {
		return nil
	}
	names := reads(compiled)
	for _, field := range from {
		if names[field.Name] {
			failed.Unbounded = append(failed.Unbounded, unbounded(field.Schema, field.Name)...)
		}
	}
	return failed
}

// Elements is how many elements a list or map has, for the estimates of costs.
func Elements(s *schema.Structural) uint64 {
	bounds := bounded(s).ValueValidation
	if s.Items != nil {
		return uint64(max(*bounds.MaxItems, 0))
	}
	return uint64(max(*bounds.MaxProperties, 0))
}

// bounded gives a schema the bounds that the estimates assume.
func bounded(s *schema.Structural) *schema.Structural {
	s = s.DeepCopy()
	if s.ValueValidation == nil {
		s.ValueValidation = &schema.ValueValidation{}
	}
	bounds := s.ValueValidation
	if len(bounds.Enum) == 0 {
		bounds.MaxLength = atMost(bounds.MaxLength, assumedLength)
	}
	bounds.MaxItems, bounds.MaxProperties = atMost(bounds.MaxItems, assumedItems), atMost(bounds.MaxProperties, assumedItems)
	if s.Items != nil {
		s.Items = bounded(s.Items)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
		s.AdditionalProperties.Structural = bounded(s.AdditionalProperties.Structural)
	}
	for name, field := range s.Properties {
		s.Properties[name] = *bounded(&field)
	}
	return s
}

func atMost(bound *int64, assumed int64) *int64 {
	if bound != nil {
		assumed = min(*bound, assumed)
	}
	return &assumed
}

// sizes tells the estimator how large values are. It implements checker.CostEstimator.
type sizes struct{ self *apiservercel.DeclType }

// EstimateSize finds the type of what is at a path below self. What an expression
// makes of the fields, such as the parts of a string, is no larger than they are.
func (z *sizes) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	at, path := z.self, element.Path()
	switch {
	case len(path) > 0 && path[0] == selfName:
		for _, name := range path[1:] {
			at = down(at, name)
		}
	case isScalar(element.Type()):
		return nil
	case len(path) == 0 && element.Expr() != nil:
		if element.Expr().Kind() != ast.CallKind {
			return nil
		}
		at = z.typeOf(element.Expr())
	default:
		at = nil
	}
	if at == nil {
		return &checker.SizeEstimate{Max: total(z.self)}
	}
	return &checker.SizeEstimate{Max: sizeOf(at)}
}

// typeOf follows what the estimator has no paths for, the optional fields; nil is unknown.
func (z *sizes) typeOf(e ast.Expr) *apiservercel.DeclType {
	switch e.Kind() {
	case ast.IdentKind:
		if e.AsIdent() == selfName {
			return z.self
		}
	case ast.SelectKind:
		return down(z.typeOf(e.AsSelect().Operand()), e.AsSelect().FieldName())
	case ast.CallKind:
		call := e.AsCall()
		switch call.FunctionName() {
		case operators.OptSelect:
			name, _ := call.Args()[1].AsLiteral().Value().(string)
			return down(z.typeOf(call.Args()[0]), name)
		case operators.OptIndex, operators.Index:
			return down(z.typeOf(call.Args()[0]), "@items")
		case "or", "orValue", "value":
			return z.typeOf(call.Target())
		}
	}
	return nil
}

// total is the size of all that is in a value.
func total(t *apiservercel.DeclType) uint64 {
	size := sizeOf(t)
	switch {
	case t.IsList() || t.IsMap():
		size = times(size, max(total(t.ElemType), 1))
	case t.IsObject():
		for _, field := range t.Fields {
			size = plus(size, total(field.Type))
		}
	}
	return size
}

// isScalar reports whether the estimator knows the size, which is that of a number.
func isScalar(t *types.Type) bool {
	switch t.Kind() {
	case types.StringKind, types.BytesKind, types.ListKind, types.MapKind, types.StructKind, types.DynKind, types.OpaqueKind:
		return false
	}
	return true
}

// EstimateCallCost implements checker.CostEstimator: the libraries know their costs.
func (z *sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

// down is the type of a part of a value, nil where it is unknown.
func down(at *apiservercel.DeclType, name string) *apiservercel.DeclType {
	if at == nil {
		return nil
	}
	switch name {
	case "@items", "@values":
		return at.ElemType
	case "@keys":
		return at.KeyType
	}
	field, found := at.Fields[name]
	if !found {
		escaped, _ := apiservercel.Escape(name)
		if field, found = at.Fields[escaped]; !found {
			return nil
		}
	}
	return field.Type
}

func sizeOf(t *apiservercel.DeclType) uint64 { return uint64(max(t.MaxElements, 0)) }

// unbounded are the bounds that a schema lacks.
func unbounded(s *schema.Structural, path string) []string {
	bounds := s.ValueValidation
	if bounds == nil {
		bounds = &schema.ValueValidation{}
	}
	var lacks []string
	switch {
	case s.Items != nil:
		if bounds.MaxItems == nil {
			lacks = append(lacks, "maxItems of "+path)
		}
		return append(lacks, unbounded(s.Items, path+"[*]")...)
	case s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil:
		if bounds.MaxProperties == nil {
			lacks = append(lacks, "maxProperties of "+path)
		}
		return append(lacks, unbounded(s.AdditionalProperties.Structural, path+"[*]")...)
	case s.Type == "string" || s.XIntOrString:
		if bounds.MaxLength == nil && len(bounds.Enum) == 0 && formatOf(s) == "" {
			lacks = append(lacks, "maxLength of "+path)
		}
	}
	for _, name := range sortedNames(s.Properties) {
		field := s.Properties[name]
		lacks = append(lacks, unbounded(&field, path+"."+name)...)
	}
	return lacks
}

// times and plus stop at the largest number.
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
