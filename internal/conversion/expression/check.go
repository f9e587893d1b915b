// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Problem is what is wrong with one expression.
type Problem struct {
	// Backward tells the expression of a from field from one of a to field.
	Backward bool
	// Name is that of the field that the expression computes.
	Name string
	// Err is a *CompileError, a *TypeError or a *CostError.
	Err error
}

// CompileError says that an expression is none, or not one over these fields.
type CompileError struct {
	Messages []string
	// Fields are those that self has, where the expression names another one.
	Fields []string
}

// Error implements error.
func (e *CompileError) Error() string {
	text := strings.Join(e.Messages[:min(len(e.Messages), 3)], "; ")
	if len(e.Fields) > 0 {
		text += "; self has " + strings.Join(e.Fields, ", ")
	}
	return text
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
	sources := slices.Clone(from)
	for i := range sources {
		sources[i].Schema = bounded(sources[i].Schema)
	}
	side, err := newSide(sources, newExpressions)
	if err != nil {
		return []Problem{{Backward: backward, Name: to[0].Name, Err: &CompileError{Messages: []string{err.Error()}}}}
	}
	var problems []Problem
	for _, field := range to {
		if err := side.check(field, from, elements); err != nil {
			problems = append(problems, Problem{Backward: backward, Name: field.Name, Err: err})
		}
	}
	return problems
}

func (s *side) check(field Field, from []Field, elements uint64) error {
	compiled, err := s.compile(field.Expression)
	if err != nil {
		return err
	}
	typed := compiled.NativeRep()
	if err := s.checkResult(typed, typed.Expr(), field.Schema); err != nil {
		return err
	}
	if _, err := s.program(compiled); err != nil {
		return &CompileError{Messages: []string{err.Error()}}
	}
	return s.checkCost(compiled, from, elements)
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
