// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package celcheck

import (
	"maps"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
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

// checkCost estimates the cost and compares it with the limit of an evaluation.
func (s scope) checkCost(compiled *cel.Ast, from []Field, elements uint64) error {
	estimate, err := s.Env.EstimateCost(compiled, &library.CostEstimator{SizeEstimator: newSizeEstimator(s.Self, compiled.NativeRep())})
	if err != nil {
		return &expression.CompileError{Messages: []string{"its cost cannot be estimated: " + err.Error()}}
	}
	failed := &CostError{Estimate: estimate.Max, Limit: min(expression.EvaluationLimit, expression.ObjectLimit/max(elements, 1)), Elements: elements}
	if estimate.Max <= failed.Limit {
		return nil
	}
	names := readFields(compiled)
	for _, field := range from {
		if names[field.Name] {
			failed.Unbounded = append(failed.Unbounded, missingBounds(field.Schema, field.Name, names)...)
		}
	}
	return failed
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

// bounded returns a copy of a schema with the limits that the estimates assume.
func bounded(s *schema.Structural) *schema.Structural {
	return withBounds(s, expression.Bounds{MaxItems: assumedItems, MaxLength: assumedLength})
}

// within returns the fields with the bounds of a rule.
func within(fields []Field, bounds expression.Bounds) []Field {
	if bounds == (expression.Bounds{}) {
		return fields
	}
	fields = slices.Clone(fields)
	for i := range fields {
		fields[i].Schema = withBounds(fields[i].Schema, bounds)
	}
	return fields
}

// withBounds returns a copy of a schema with these bounds, unless it has lower ones.
func withBounds(s *schema.Structural, limits expression.Bounds) *schema.Structural {
	s = s.DeepCopy()
	if s.ValueValidation == nil {
		s.ValueValidation = &schema.ValueValidation{}
	}
	bounds := s.ValueValidation
	if len(bounds.Enum) == 0 {
		bounds.MaxLength = minBound(bounds.MaxLength, limits.MaxLength)
	}
	bounds.MaxItems, bounds.MaxProperties = minBound(bounds.MaxItems, limits.MaxItems), minBound(bounds.MaxProperties, limits.MaxItems)
	if s.Items != nil {
		s.Items = withBounds(s.Items, limits)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
		s.AdditionalProperties.Structural = withBounds(s.AdditionalProperties.Structural, limits)
	}
	for name, field := range s.Properties {
		s.Properties[name] = *withBounds(&field, limits)
	}
	return s
}

// minBound returns the lower bound. Nil and zero are no bound.
func minBound(bound *int64, limit int) *int64 {
	lower := int64(limit)
	if lower == 0 || bound != nil && *bound < lower {
		return bound
	}
	return &lower
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
