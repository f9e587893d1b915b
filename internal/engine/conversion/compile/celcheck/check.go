// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package celcheck finds problems in expressions before clients rely on them. It compiles them over
// the schemas of a CustomResourceDefinition (check.go), with the environment that
// internal/engine/conversion/expression uses in converter pods, compares the type of each result with the
// schema of its field (types.go), and estimates the cost for values as large as the schemas allow (cost.go).
//
// Converter pods do not link this package. They declare the same types from the stripped schemas of the ruleset.
package celcheck

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/expression"
)

// Field is a field of one side.
type Field struct {
	// Name is the name of the field in the expressions of the other side: self.name.
	Name   string
	Schema *schema.Structural
	// Expression computes it from the fields of the other side. Those of a side that is only read have none.
	Expression string
}

// Types returns the schema of the field in the form in which expressions have it.
func (f Field) Types() common.Schema { return &model.Structural{Structural: f.Schema} }

// Problem describes an expression that is invalid, or may be too expensive.
type Problem struct {
	// Name is the name of the field that the expression computes.
	Name string
	// Err is an *expression.CompileError, a *TypeError or a *CostError.
	Err error
}

// TypeError reports a result whose type does not fit the field.
type TypeError struct {
	Result, Field string
	// Hint suggests a solution. It may be empty.
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

// CostError reports an expression that may be too expensive for large values. It is valid nevertheless.
type CostError struct {
	// Part is the part of the expression that may be, empty if that is all of it.
	Part string
	// Estimate is the cost for large values, in the units of validation rules.
	Estimate uint64
	// Elements is how often the expression is evaluated for one object, at most.
	Elements uint64
}

// Error implements error.
func (e *CostError) Error() string {
	text := fmt.Sprintf("may cost %d", e.Estimate)
	if e.Part != "" {
		text += ", most of it in " + e.Part + ","
	}
	if e.Estimate > expression.EvaluationLimit {
		text = fmt.Sprintf("%s, and gives no value if it costs more than %d", strings.TrimSuffix(text, ","), expression.EvaluationLimit)
	} else {
		text += fmt.Sprintf(" for each of up to %d elements, and an object cannot be converted if its expressions cost more than %d", e.Elements, expression.BudgetLimit)
	}
	return text + ": make the expression simpler, or limit what it reads by maxLength, maxItems and maxProperties in the schema"
}

// Check returns the problems of the expressions of fields that compute from the fields of the other side. They are evaluated
// for every element of the lists and maps that contain the fields. Elements is the maximum number of such elements in one
// object, 1 if there are no such lists.
func Check(from, to []Field, elements uint64) (problems []Problem) {
	to = slices.DeleteFunc(slices.Clone(to), func(field Field) bool { return field.Expression == "" }) // these are only read
	if len(to) == 0 {
		return nil
	}
	scope, err := newScope(from)
	if err != nil {
		return []Problem{{to[0].Name, &expression.CompileError{Messages: []string{err.Error()}}}}
	}
	for _, field := range to {
		if err := scope.check(field, elements); err != nil {
			problems = append(problems, Problem{field.Name, err})
		}
	}
	return problems
}

// scope is one side's fields, for the expressions of the other side.
type scope struct{ *expression.Scope }

func newScope(from []Field) (scope, error) {
	types := map[string]*apiservercel.DeclType{}
	for _, field := range from {
		types[field.Name] = expression.DeclType(field.Types())
	}
	of, err := expression.NewScope(types, expression.NewExpressions)
	return scope{of}, err
}

func (s scope) check(field Field, elements uint64) (err error) {
	defer expression.Recover(&err)
	compiled, err := s.Compile(field.Expression)
	if err != nil {
		return err
	}
	typed := compiled.NativeRep()
	if err := s.checkResult(typed, typed.Expr(), field.Types()); err != nil {
		return err
	}
	if _, err := s.Program(compiled); err != nil {
		return &expression.CompileError{Messages: []string{err.Error()}}
	}
	return s.checkCost(compiled, elements)
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Name returns the problem with a field's name, empty if the name is valid.
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
