// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package celcheck says what is wrong with expressions before any client relies on
// them. It compiles them over the schemas of a definition (check.go), with
// what internal/conversion/expression evaluates them with in converter pods, holds
// the type of each result against the schema of its field (types.go), and estimates
// the cost for values as large as the schemas allow (cost.go, size.go).
//
// Converter pods do not link it: Shape makes the small form of a schema that a ruleset
// has, and from which they declare the same types.
package celcheck

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/conversion-operator/conversion-operator/internal/conversion/expression"
)

// Field is a field of one side.
type Field struct {
	// Name is what the expressions of the other side call it: self.name.
	Name string
	// Schema says what it may hold.
	Schema *schema.Structural
	// Expression computes it from the fields of the other side.
	Expression string
}

// Problem is what is wrong with one expression.
type Problem struct {
	// Backward tells the expression of a from field from one of a to field.
	Backward bool
	// Name is that of the field that the expression computes.
	Name string
	// Err is an *expression.CompileError, a *TypeError or a *CostError.
	Err error
}

// TypeError says that the result is not what the field holds.
type TypeError struct {
	Result, Field string
	// Hint is what to do about it, where that is known.
	Hint string
}

// Error implements error.
func (e *TypeError) Error() string {
	text := fmt.Sprintf("gives %s, and the field is of type %s", e.Result, e.Field)
	if e.Hint != "" {
		text += ": " + e.Hint
	}
	return text
}

// CostError says that an expression may take too long.
type CostError struct {
	// Estimate is the cost for large values, and Limit the most that it may be, in
	// the units of validation rules.
	Estimate, Limit uint64
	// Elements is how often the expression is evaluated for one object.
	Elements uint64
	// Unbounded are what the schemas lack that would lower the estimate.
	Unbounded []string
}

// Error implements error.
func (e *CostError) Error() string {
	text := fmt.Sprintf("may cost %d, and at most %d is allowed", e.Estimate, e.Limit)
	if e.Elements > 1 {
		text += fmt.Sprintf(" where it is evaluated for up to %d elements", e.Elements)
	}
	if len(e.Unbounded) > 0 {
		return text + ": set " + strings.Join(e.Unbounded[:min(len(e.Unbounded), 5)], ", ") + " in the schema, or make the expression simpler"
	}
	return text + ": make the expression simpler, or lower maxLength, maxItems and maxProperties of what it reads"
}

// Check says what is wrong with the expressions of the to fields, which compute
// from the from fields, and with those of the from fields, which compute from the
// to fields. They are evaluated for every element of the lists and maps that the
// fields are in: elements is how many there are at most in one object, 1 where
// there are no such lists.
func Check(from, to []Field, elements uint64) []Problem {
	return append(checkSide(from, to, elements, false), checkSide(to, from, elements, true)...)
}

func checkSide(from, to []Field, elements uint64, backward bool) []Problem {
	scope, err := newScope(from)
	if err != nil {
		return []Problem{{Backward: backward, Name: to[0].Name, Err: &expression.CompileError{Messages: []string{err.Error()}}}}
	}
	var problems []Problem
	for _, field := range to {
		if err := scope.check(field, from, elements); err != nil {
			problems = append(problems, Problem{Backward: backward, Name: field.Name, Err: err})
		}
	}
	return problems
}

// scope is one side's fields, with their bounds, as the expressions of the other side see them.
type scope struct{ *expression.Scope }

func newScope(from []Field) (scope, error) {
	types := map[string]*apiservercel.DeclType{}
	for _, field := range from {
		types[field.Name] = model.SchemaDeclType(bounded(field.Schema), field.Schema.XEmbeddedResource)
	}
	of, err := expression.NewScope(types, expression.NewExpressions)
	return scope{of}, err
}

func (s scope) check(field Field, from []Field, elements uint64) error {
	compiled, err := s.Compile(field.Expression)
	if err != nil {
		return err
	}
	holds, err := shapeOf(field.Schema)
	if err != nil {
		return &expression.CompileError{Messages: []string{err.Error()}}
	}
	typed := compiled.NativeRep()
	if err := s.checkResult(typed, typed.Expr(), holds); err != nil {
		return err
	}
	if _, err := s.Program(compiled); err != nil {
		return &expression.CompileError{Messages: []string{err.Error()}}
	}
	return s.checkCost(compiled, from, elements)
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Name says what is wrong with the name of a field; empty where nothing is.
func Name(name string) string {
	switch name {
	case "true", "false", "null", "in":
		return "true, false, null and in are no names in expressions, and without quotes YAML reads y, n, yes, no, on and off as one of them: choose another name"
	}
	if !identifier.MatchString(name) {
		return "expressions call the field self.name: write the name with letters, digits and _, and no digit first"
	}
	return ""
}
