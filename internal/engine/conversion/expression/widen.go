// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// widen puts dyn() around the branches of choices, and around the elements of lists that are joined, where an expression
// returns them: CEL wants them to have one type. A result is JSON, and has no other type than the schema of its field: it is
// compared with that branch by branch when it is compiled, and as a whole when it is evaluated.
func widen(parsed *ast.AST) {
	w := widener{parsed.SourceInfo(), ast.NewExprFactory(), ast.MaxID(parsed)}
	w.result(parsed.Expr())
}

type widener struct {
	source  *ast.SourceInfo
	factory ast.ExprFactory
	next    int64
}

// result widens what is a result, or a part of one.
func (w *widener) result(e ast.Expr) {
	switch e.Kind() {
	case ast.CallKind:
		args := e.AsCall().Args()
		switch e.AsCall().FunctionName() {
		case operators.Conditional:
			w.result(args[1])
			w.result(args[2])
			w.dyn(args[1:])
		case operators.Add:
			w.joined(e)
		case "dyn", "optional.of", "optional.ofNonZeroValue":
			w.result(args[0])
		}
	case ast.ComprehensionKind:
		w.result(e.AsComprehension().Result()) // of optMap
		w.step(e.AsComprehension().LoopStep())
	case ast.ListKind:
		for _, element := range e.AsList().Elements() {
			w.result(element)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			if !entry.AsMapEntry().IsOptional() { // CEL fails at ?'name': null
				w.result(entry.AsMapEntry().Value())
			}
		}
	}
}

// joined widens lists that + joins.
func (w *widener) joined(e ast.Expr) {
	switch e.Kind() {
	case ast.ListKind:
		w.result(e)
		w.dyn(e.AsList().Elements())
	case ast.ComprehensionKind:
		w.result(e)
	case ast.CallKind:
		if name := e.AsCall().FunctionName(); name == operators.Add || name == operators.Conditional {
			for _, arg := range e.AsCall().Args() {
				w.joined(arg)
			}
		}
	}
}

// step widens what a loop adds to its list or map.
func (w *widener) step(e ast.Expr) {
	if e.Kind() != ast.CallKind {
		return
	}
	args := e.AsCall().Args()
	switch e.AsCall().FunctionName() {
	case operators.Conditional: // whether it adds anything
		w.step(args[1])
		w.step(args[2])
	case operators.Add, "cel.@mapInsert":
		w.result(args[len(args)-1])
	}
}

// dyn puts dyn() around expressions that have none.
func (w *widener) dyn(all []ast.Expr) {
	for i, e := range all {
		if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == "dyn" {
			continue
		}
		at, _ := w.source.GetOffsetRange(e.ID())
		w.source.SetOffsetRange(w.next, at)
		all[i] = w.factory.NewCall(w.next, "dyn", e)
		w.next++
	}
}

// mixedLiterals takes the place of the check that all elements of a list, and all values of a map, have one type.
type mixedLiterals struct{}

func (mixedLiterals) Name() string { return cel.ValidateHomogeneousAggregateLiterals().Name() }

func (mixedLiterals) Validate(*cel.Env, cel.ValidatorConfig, *ast.AST, *cel.Issues) {}
