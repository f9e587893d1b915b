// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package celcheck

import (
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/parser"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/expression"
)

const (
	// Estimates assume these maximum sizes, of texts in characters and of lists and maps in elements, unless the schema has
	// lower limits. The API server assumes values as large as a request, and so refuses most expressions over fields without
	// limits. Here a value that is too large for its expression does no harm: the evaluation stops at its limit, and the value
	// is preserved.
	assumedLength = 128
	assumedItems  = 128
	// characterSize is what a character counts in estimates, in bytes.
	characterSize = 4
)

// checkCost returns a *CostError if an evaluation may exceed its limit, or the evaluations for all elements of an object that
// of an expression.
func (s scope) checkCost(compiled *cel.Ast, elements uint64) error {
	estimate, err := s.Env.EstimateCost(compiled, s.estimator())
	if err != nil {
		return &expression.CompileError{Messages: []string{"its cost cannot be estimated: " + err.Error()}}
	}
	if estimate.Max <= min(expression.EvaluationLimit, expression.ObjectLimit/max(elements, 1)) {
		return nil
	}
	return &CostError{Part: s.expensivePart(compiled, estimate.Max), Estimate: estimate.Max, Elements: elements}
}

// maxPart is the maximum length of a part of an expression in a message, in bytes.
const maxPart = 100

// expensivePart returns the innermost loop that may cost most of an expression, empty if there is none but the expression
// itself.
func (s scope) expensivePart(compiled *cel.Ast, cost uint64) (text string) {
	env, err := s.Env.Extend(cel.EnableMacroCallTracking()) // the text of a part needs the macros in it
	if err != nil {
		return ""
	}
	compiled, issues := env.Compile(compiled.Source().Content())
	if issues.Err() != nil {
		return ""
	}
	typed := compiled.NativeRep()
	ast.PostOrderVisit(typed.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if text != "" || e.Kind() != ast.ComprehensionKind || e.ID() == typed.Expr().ID() {
			return
		}
		part := ast.NewCheckedAST(ast.NewAST(e, typed.SourceInfo()), typed.TypeMap(), typed.ReferenceMap())
		if of, err := checker.Cost(part, s.estimator()); err != nil || of.Max < cost/2 {
			return
		}
		if text, _ = parser.Unparse(e, typed.SourceInfo()); len(text) > maxPart {
			text = strings.ToValidUTF8(text[:maxPart], "") + "..."
		}
	}))
	return text
}

// Elements returns how many elements a list or map has at most, for cost estimates.
func Elements(s *schema.Structural) uint64 {
	most := int64(assumedItems)
	if of := s.ValueValidation; of != nil {
		for _, limit := range []*int64{of.MaxItems, of.MaxProperties} {
			if limit != nil {
				most = min(most, max(*limit, 0))
			}
		}
	}
	return uint64(most)
}

// sizes implements checker.CostEstimator with the maximum sizes of values. The libraries know the costs of their calls.
type sizes struct{ self *apiservercel.DeclType }

func (s scope) estimator() checker.CostEstimator {
	return &library.CostEstimator{SizeEstimator: sizes{s.Self}}
}

// EstimateSize returns the size of a value. Those that an expression derives from fields have no path, and no limit.
func (s sizes) EstimateSize(value checker.AstNode) *checker.SizeEstimate {
	var most int64
	switch value.Type().Kind() {
	case types.TypeKind:
		most = 1 // type(x) == int compares two names
	case types.StringKind, types.BytesKind, types.DynKind:
		most = assumedLength * characterSize
	case types.ListKind, types.MapKind, types.StructKind, types.OpaqueKind:
		most = assumedItems
	default:
		return nil // the library knows the sizes of all other values
	}
	if path := value.Path(); len(path) > 0 && path[0] == expression.Self {
		of := s.self
		for _, name := range path[1:] {
			of = memberType(of, name)
		}
		if of != nil {
			most = min(most, max(of.MaxElements, 0))
		}
	}
	return &checker.SizeEstimate{Max: uint64(most)}
}

// EstimateCallCost implements checker.CostEstimator.
func (sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
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
	escaped, _ := apiservercel.Escape(name)
	for _, member := range []string{name, escaped} {
		if field, found := parent.Fields[member]; found {
			return field.Type
		}
	}
	return nil
}
