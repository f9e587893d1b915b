// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"fmt"

	"github.com/google/cel-go/cel"
)

// Field is a field of one side.
type Field struct {
	// Name is its name in the expressions of the other side: self.name.
	Name string
	// Schema is its schema.
	Schema *Schema
	// Expression computes it from the fields of the other side.
	Expression string
}

// Program computes the fields of one side from those of the other. It is immutable and safe for
// concurrent use.
type Program struct {
	sources []Field
	targets []target
	bounds  Bounds
}

// target is a field to compute.
type target struct {
	program cel.Program
	schema  *Schema
}

// New compiles the expressions of the target fields, which read values within the bounds. It fails
// only if the compiler found an error, or was not run.
func New(from, to []Field, bounds Bounds) (*Program, error) {
	scope, err := NewScope(typesOf(from), StoredExpressions)
	if err != nil {
		return nil, err
	}
	p := &Program{sources: from, bounds: bounds}
	for _, field := range to {
		compiled, err := scope.Compile(field.Expression)
		if err != nil {
			return nil, fmt.Errorf("the expression of %s: %w", field.Name, err)
		}
		program, err := scope.Program(compiled)
		if err != nil {
			return nil, fmt.Errorf("the expression of %s: %w", field.Name, err)
		}
		p.targets = append(p.targets, target{program, field.Schema})
	}
	return p, nil
}

// Evaluate returns the values of the target fields for those of the source fields: JSON texts, in
// the order of New, nil for a missing value. If all source values are missing or null, so are all
// results, unless whenMissing is true: an object that lacks the fields does not get any. It charges
// the budget, and has no results once that is exhausted.
func (p *Program) Evaluate(values [][]byte, whenMissing bool, budget *Budget) [][]byte {
	results := make([][]byte, len(p.targets))
	if budget.chargeRead(values); budget.Exhausted() {
		return results
	}
	self := make(map[string]any, len(p.sources))
	for i, field := range p.sources {
		if value := readValue(values[i], field.Schema, p.bounds); value != nil {
			self[field.Name] = value
		}
	}
	if len(self) == 0 && !whenMissing {
		return results
	}
	variables := map[string]any{Self: self}
	for i := range p.targets {
		results[i] = p.targets[i].evaluate(variables, budget)
		if budget.Exhausted() {
			clear(results)
			return results
		}
	}
	return results
}

// evaluate returns the JSON text of the result, or nil.
func (t *target) evaluate(variables map[string]any, budget *Budget) []byte {
	value, details, err := t.program.Eval(variables)
	budget.chargeEvaluation(details)
	if err != nil {
		return nil
	}
	return writeResult(value, t.schema)
}
