// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package celcheck

import (
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/parser"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/expression"
)

const (
	// Estimates assume these maximum sizes, of texts in characters and of lists and maps in
	// elements, unless the schema has lower limits. The API server assumes values as large as
	// a request, and so refuses most expressions over fields without limits. Here a value that
	// is too large for its expression does no harm: the evaluation stops at its limit, and the
	// value is preserved.
	assumedLength = 128
	assumedItems  = 128
)

// checkCost returns a *CostError if an evaluation may exceed its limit, or the evaluations for all elements of an object that
// of an expression.
func (s scope) checkCost(compiled *cel.Ast, from []Field, elements uint64) error {
	estimate, err := s.Env.EstimateCost(compiled, &library.CostEstimator{SizeEstimator: newSizeEstimator(s.Self)})
	if err != nil {
		return &expression.CompileError{Messages: []string{"its cost cannot be estimated: " + err.Error()}}
	}
	limit := min(expression.EvaluationLimit, expression.ObjectLimit/max(elements, 1))
	if estimate.Max <= limit {
		return nil
	}
	failed := &CostError{Part: s.expensivePart(compiled, estimate.Max), Estimate: estimate.Max, Elements: elements}
	names := readFields(compiled)
	for _, field := range from {
		if names[field.Name] {
			failed.Unbounded = append(failed.Unbounded, missingBounds(field.Schema, field.Name, names)...)
		}
	}
	return failed
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
	estimator := &library.CostEstimator{SizeEstimator: newSizeEstimator(s.Self)}
	ast.PostOrderVisit(typed.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if text != "" || e.Kind() != ast.ComprehensionKind || e.ID() == typed.Expr().ID() {
			return
		}
		part := ast.NewCheckedAST(ast.NewAST(e, typed.SourceInfo()), typed.TypeMap(), typed.ReferenceMap())
		if of, err := checker.Cost(part, estimator); err != nil || of.Max < cost/2 {
			return
		}
		if text, _ = parser.Unparse(e, typed.SourceInfo()); len(text) > maxPart {
			text = strings.ToValidUTF8(text[:maxPart], "") + "..."
		}
	}))
	return text
}

// readFields returns the fields of self that an expression names.
func readFields(compiled *cel.Ast) map[string]bool {
	names := map[string]bool{}
	ast.PreOrderVisit(compiled.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.SelectKind:
			names[e.AsSelect().FieldName()] = true
		case ast.LiteralKind:
			// self.?name is a call with the name as its argument.
			if name, isText := e.AsLiteral().Value().(string); isText {
				names[name] = true
			}
		}
	}))
	return names
}

// Elements returns how many elements a list or map has at most, for cost estimates.
func Elements(s *schema.Structural) uint64 {
	bounds := bounded(s).ValueValidation
	if s.Items != nil {
		return uint64(max(*bounds.MaxItems, 0))
	}
	return uint64(max(*bounds.MaxProperties, 0))
}

// bounded returns a copy of a schema with the limits that the estimates assume, unless it has lower ones.
func bounded(s *schema.Structural) *schema.Structural {
	s = s.DeepCopy()
	if s.ValueValidation == nil {
		s.ValueValidation = &schema.ValueValidation{}
	}
	bounds := s.ValueValidation
	if len(bounds.Enum) == 0 {
		bounds.MaxLength = minBound(bounds.MaxLength, assumedLength)
	}
	bounds.MaxItems, bounds.MaxProperties = minBound(bounds.MaxItems, assumedItems), minBound(bounds.MaxProperties, assumedItems)
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

// minBound returns the lower bound. Nil is no bound.
func minBound(bound *int64, assumed int64) *int64 {
	if bound != nil && *bound < assumed {
		return bound
	}
	return &assumed
}

// missingBounds returns the limits that a schema lacks, for the members that an expression names.
func missingBounds(s *schema.Structural, path string, names map[string]bool) []string {
	bounds := s.ValueValidation
	if bounds == nil {
		bounds = &schema.ValueValidation{}
	}
	var missing []string
	switch {
	case s.Items != nil:
		if bounds.MaxItems == nil {
			missing = append(missing, "maxItems of "+path)
		}
		return append(missing, missingBounds(s.Items, path+"[*]", names)...)
	case s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil:
		if bounds.MaxProperties == nil {
			missing = append(missing, "maxProperties of "+path)
		}
		return append(missing, missingBounds(s.AdditionalProperties.Structural, path+"[*]", names)...)
	case s.Type == "string" || s.XIntOrString:
		if bounds.MaxLength == nil && len(bounds.Enum) == 0 && (s.Type != "string" || bounds.Format == "") {
			missing = append(missing, "maxLength of "+path)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if field := s.Properties[name]; names[name] {
			missing = append(missing, missingBounds(&field, path+"."+name, names)...)
		}
	}
	return missing
}
