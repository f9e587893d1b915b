// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"k8s.io/apiserver/pkg/cel/common"
)

// Field is a field of one side.
type Field struct {
	// Name is its name in the expressions of the other side: self.name.
	Name string
	// Schema is its schema.
	Schema common.Schema
	// Expression computes it from the fields of the other side.
	Expression string
}

// Program computes the fields of one side from those of the other. It is immutable and safe for
// concurrent use.
type Program struct {
	sources []Field
	targets []target
	// reads is true for the source fields that an expression reads.
	reads []bool
	// readsMetadata is true if an expression reads the metadata of the object.
	readsMetadata bool
}

// target is a field to compute.
type target struct {
	program cel.Program
	schema  common.Schema
}

// Input is what expressions read.
type Input struct {
	// Values are the source fields: JSON texts, in the order of New, nil for a missing value.
	Values [][]byte
	// WhenMissing evaluates the expressions also if all values that they read are missing or null. Otherwise an object
	// that lacks these fields does not get any.
	WhenMissing bool
	// Name and Namespace are those of the object: JSON texts, nil if it has none.
	Name, Namespace []byte
}

// metadata returns the value of the variable Metadata.
func (in *Input) metadata() map[string]any {
	members := map[string]any{}
	for member, text := range map[string][]byte{"name": in.Name, "namespace": in.Namespace} {
		if value, err := decode(text); err == nil {
			members[member] = value
		}
	}
	return members
}

// New compiles the expressions of the target fields. It fails only if the compiler found an error, or was not run.
func New(from, to []Field) (*Program, error) {
	scope, err := NewScope(typesOf(from), StoredExpressions)
	if err != nil {
		return nil, err
	}
	p, all := &Program{sources: from}, make([]*ast.AST, 0, len(to))
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
		p.readsMetadata = p.readsMetadata || ReadsMetadata(compiled.NativeRep())
		all = append(all, compiled.NativeRep())
	}
	p.reads = reads(from, all)
	return p, nil
}

// Reads reports whether an expression reads a source field.
func (p *Program) Reads(field int) bool { return p.reads[field] }

// Evaluate returns the values of the target fields: JSON texts, in the order of New, nil for a missing
// value. It charges the budget, and has no results once that is exhausted.
func (p *Program) Evaluate(in Input, budget *Budget) [][]byte {
	results := make([][]byte, len(p.targets))
	if budget.chargeRead(in.Values); budget.Exhausted() {
		return results
	}
	self := make(map[string]any, len(p.sources))
	for i, field := range p.sources {
		if !p.reads[i] {
			continue
		}
		if value := readValue(in.Values[i], field.Schema); value != nil {
			self[field.Name] = value
		}
	}
	if len(self) == 0 && !in.WhenMissing {
		return results
	}
	variables := map[string]any{Self: self}
	if p.readsMetadata {
		variables[Metadata] = in.metadata()
	}
	for i := range p.targets {
		results[i] = p.targets[i].evaluate(variables, budget)
		if budget.Exhausted() {
			clear(results)
			return results
		}
	}
	return results
}

// ReadsMetadata reports whether an expression has the variable Metadata.
func ReadsMetadata(compiled *ast.AST) bool {
	for _, reference := range compiled.ReferenceMap() {
		if reference.Name == Metadata {
			return true
		}
	}
	return false
}

// evaluate returns the JSON text of the result, or nil.
func (t *target) evaluate(variables map[string]any, budget *Budget) (text []byte) {
	defer func() { _ = recover() }() // a panic of the library is an error of the expression, which gives no value
	value, details, err := t.program.Eval(variables)
	budget.chargeEvaluation(details)
	if err != nil {
		return nil
	}
	return writeResult(value, t.schema)
}
