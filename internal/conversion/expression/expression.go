// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"fmt"

	"github.com/google/cel-go/cel"
)

// Field is a field of one side.
type Field struct {
	// Name is what the expressions of the other side call it: self.name.
	Name string
	// Schema says what it may hold.
	Schema *Schema
	// Expression computes it from the fields of the other side.
	Expression string
}

// Program computes the fields of one side from those of the other. It never
// changes, and any number of goroutines may use it.
type Program struct {
	sources []Field
	targets []target
}

// target is a field that is computed.
type target struct {
	program cel.Program
	schema  *Schema
}

// New compiles the expressions of the target fields. It fails only where the
// compiler found something wrong, or was not asked.
func New(from, to []Field) (*Program, error) {
	scope, err := NewScope(typesOf(from), StoredExpressions)
	if err != nil {
		return nil, err
	}
	p := &Program{sources: from}
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

// Evaluate computes the target fields' values from those of the source fields,
// as JSON texts in the order in which New was given the fields. Nil is a missing
// value, in both. If all values are missing or null, so are all results: an
// object that lacks the fields does not get any. It spends of the budget, and has
// no results once that is exhausted.
func (p *Program) Evaluate(values [][]byte, budget *Budget) [][]byte {
	results := make([][]byte, len(p.targets))
	if budget.read(values); budget.Exhausted() {
		return results
	}
	self := make(map[string]any, len(p.sources))
	for i, field := range p.sources {
		if value := read(values[i], field.Schema); value != nil {
			self[field.Name] = value
		}
	}
	if len(self) == 0 {
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

// evaluate gives the JSON text of the result, or nil.
func (t *target) evaluate(variables map[string]any, budget *Budget) []byte {
	value, details, err := t.program.Eval(variables)
	budget.evaluated(details)
	if err != nil {
		return nil
	}
	return write(value, t.schema)
}
