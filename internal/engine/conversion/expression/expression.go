// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apiserver/pkg/cel/common"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// Field is a field of one side.
type Field struct {
	// Name is its name in the expressions of the other side: self.name.
	Name string
	// Schema is its schema: that of its values by TypesOf, or one that declares types only.
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
	schema  *shape.Schema
}

// Input is what expressions read.
type Input struct {
	// Values are the source fields, in the order of New, nil for a missing value. Bytes is their size as JSON.
	Values []*tree.Node
	Bytes  int
	// WhenMissing evaluates the expressions also if all values that they read are missing or null. Otherwise an object
	// that lacks these fields does not get any.
	WhenMissing bool
	// Name and Namespace are those of the object, nil if it has none.
	Name, Namespace *tree.Node
}

// metadata returns the value of the variable Metadata.
func (in *Input) metadata() map[string]any {
	members := map[string]any{}
	for member, name := range map[string]*tree.Node{"name": in.Name, "namespace": in.Namespace} {
		if name != nil {
			members[member] = name.Text()
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
		p.targets = append(p.targets, target{program, shapeOf(field.Schema)})
		p.readsMetadata = p.readsMetadata || ReadsMetadata(compiled.NativeRep())
		all = append(all, compiled.NativeRep())
	}
	p.reads = reads(from, all)
	return p, nil
}

// Reads reports whether an expression reads a source field.
func (p *Program) Reads(field int) bool { return p.reads[field] }

// Evaluate returns the values of the target fields, in the order of New: nil for one that is missing, or that does not fit its
// schema. It charges the budget, and has no results once that is exhausted.
func (p *Program) Evaluate(a *tree.Arena, in Input, budget *Budget) []*tree.Node {
	results := make([]*tree.Node, len(p.targets))
	if budget.spent += int64(in.Bytes / bytesPerUnit); budget.Exhausted() {
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
		result := p.targets[i].evaluate(variables, budget)
		if budget.Exhausted() {
			clear(results)
			return results
		}
		if result != nil {
			results[i] = writeResult(a, result, p.targets[i].schema)
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

// evaluate returns the result, or nil.
func (t *target) evaluate(variables map[string]any, budget *Budget) (result ref.Val) {
	defer func() { _ = recover() }() // a panic of the library is an error of the expression, which gives no value
	value, details, err := t.program.Eval(variables)
	budget.chargeEvaluation(details)
	if err != nil {
		return nil
	}
	return value
}
