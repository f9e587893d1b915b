// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// reads reports for each source field whether one of the expressions reads it. If they read none, all count: they tell whether
// an object gets constants.
func reads(from []Field, compiled []*ast.AST) []bool {
	read, whole := map[string]bool{}, false
	for _, expression := range compiled {
		whole = readsOf(expression, read) || whole
	}
	fields := make([]bool, len(from))
	for i, field := range from {
		fields[i] = whole || read[field.Name]
	}
	if !slices.Contains(fields, true) {
		return slices.Repeat([]bool{true}, len(fields))
	}
	return fields
}

// readsOf collects the fields of self that an expression reads, and reports whether it has self as a whole.
func readsOf(compiled *ast.AST, read map[string]bool) (whole bool) {
	isSelf := func(e ast.Expr) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == Self }
	uses, named := 0, 0
	ast.PreOrderVisit(compiled.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch {
		case isSelf(e):
			uses++
		case e.Kind() == ast.SelectKind && isSelf(e.AsSelect().Operand()):
			read[e.AsSelect().FieldName()] = true
			named++
		case e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.OptSelect && isSelf(e.AsCall().Args()[0]):
			if name, isText := e.AsCall().Args()[1].AsLiteral().Value().(string); isText {
				read[name] = true
				named++
			}
		}
	}))
	return uses > named
}
