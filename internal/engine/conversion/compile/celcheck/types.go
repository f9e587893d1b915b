// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package celcheck

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/expression"
)

// checkResult compares the results of an expression with the schema of the field. It examines each
// branch of a conditional, and the arguments of dyn() and optional.of(), because these calls hide
// the types of their results.
func (s scope) checkResult(typed *ast.AST, e ast.Expr, field common.Schema) error {
	switch e.Kind() {
	case ast.ComprehensionKind:
		return s.checkResult(typed, e.AsComprehension().Result(), field) // for optMap; the result of a loop has the loop's type
	case ast.CallKind:
		args := e.AsCall().Args()
		switch e.AsCall().FunctionName() {
		case operators.Conditional:
			return cmp.Or(s.checkResult(typed, args[1], field), s.checkResult(typed, args[2], field))
		case "dyn":
			if typed.GetType(args[0].ID()).Kind() == types.DynKind {
				return nil // the author asked for a check at evaluation
			}
			return s.checkResult(typed, args[0], field)
		case "optional.of", "optional.ofNonZeroValue":
			return s.checkResult(typed, args[0], field)
		case "optional.none":
			return nil
		case operators.Add:
			if typed.GetType(e.ID()).Kind() == types.ListKind {
				return cmp.Or(s.checkResult(typed, args[0], field), s.checkResult(typed, args[1], field))
			}
		}
	case ast.ListKind:
		if field.Type() == "array" && field.Items() != nil {
			return s.checkElements(typed, e.AsList().Elements(), field.Items())
		}
	case ast.MapKind:
		if field.Type() == "object" {
			return s.checkMembers(typed, e.AsMap().Entries(), field)
		}
	}
	return s.checkType(typed.GetType(e.ID()), field)
}

func (s scope) checkElements(typed *ast.AST, elements []ast.Expr, field common.Schema) error {
	for _, element := range elements {
		if err := s.checkResult(typed, element, field); err != nil {
			return err
		}
	}
	return nil
}

// checkMembers compares what an expression writes in an object with the schema of each member.
func (s scope) checkMembers(typed *ast.AST, members []ast.EntryExpr, field common.Schema) error {
	for _, entry := range members {
		key, value := entry.AsMapEntry().Key(), entry.AsMapEntry().Value()
		if kind := typed.GetType(key.ID()).Kind(); kind != types.StringKind && kind != types.DynKind {
			return &TypeError{Result: "a map with keys of type " + typed.GetType(key.ID()).String(), Field: typeOf(field)}
		}
		if key.Kind() != ast.LiteralKind {
			continue // a name that is computed
		}
		name, _ := key.AsLiteral().Value().(string)
		member := expression.Member(field, name)
		if member == nil {
			return &TypeError{Result: "an object with a member " + name, Field: typeOf(field), Hint: "that has " + nameAll(field)}
		}
		if err := s.checkResult(typed, value, member); err != nil {
			return err
		}
	}
	return nil
}

// nameAll names the members of an object, at most ten.
func nameAll(field common.Schema) string {
	names := slices.Sorted(maps.Keys(field.Properties()))
	return cmp.Or(strings.Join(names[:min(len(names), 10)], ", "), "none")
}

// checkType compares the type of a result with the schema of the field. Types that are unknown
// before evaluation, for example of the members of a map, are checked at evaluation.
func (s scope) checkType(result *types.Type, field common.Schema) error {
	result = unwrapOptional(result)
	if result.Kind() == types.NullTypeKind ||
		s.isAssignable(result, field) && (result.Kind() != types.DynKind || expression.IsOpaque(field) || field.IsXIntOrString()) {
		return nil
	}
	failed := &TypeError{Result: expression.Readable(result.String()), Field: typeOf(field)}
	convert, scalar := conversionFunctions[field.Type()]
	switch {
	case scalar && result.Kind() != types.ListKind && result.Kind() != types.MapKind:
		failed.Hint = "convert it with " + convert
	case result.Kind() == types.DynKind:
		failed.Hint = "put it in dyn() to have it checked each time"
	}
	return failed
}

// unwrapOptional returns the type inside an optional type, or the type itself.
func unwrapOptional(t *types.Type) *types.Type {
	if t.Kind() == types.OpaqueKind && t.TypeName() == types.OptionalType.TypeName() {
		return t.Parameters()[0]
	}
	return t
}

// conversionFunctions convert to the types of fields.
var conversionFunctions = map[string]string{"integer": "int()", "number": "double()", "string": "string()", "boolean": "bool()"}

// isAssignable reports whether a value of a type can be a value of the field. Dyn can be any value:
// expressions use it for maps whose members have several types.
func (s scope) isAssignable(result *types.Type, field common.Schema) bool {
	switch result = unwrapOptional(result); result.Kind() {
	case types.DynKind:
		return true
	case types.NullTypeKind:
		return field.Nullable() || expression.Untyped(field)
	case types.BoolKind:
		return field.Type() == "boolean" || expression.Untyped(field)
	case types.IntKind:
		return field.Type() == "integer" || field.Type() == "number" || field.IsXIntOrString() || expression.Untyped(field)
	case types.DoubleKind:
		return field.Type() == "number" || expression.Untyped(field)
	case types.StringKind:
		return field.Type() == "string" || field.IsXIntOrString() || expression.Untyped(field)
	case types.BytesKind:
		return expression.Format(field) == "byte" || expression.Untyped(field)
	case types.DurationKind:
		return expression.Format(field) == "duration" || expression.Untyped(field)
	case types.TimestampKind:
		return expression.Format(field) == "date" || expression.Format(field) == "date-time" || expression.Untyped(field)
	case types.ListKind:
		return s.isAssignableList(result.Parameters()[0], field)
	case types.MapKind:
		return s.isAssignableMap(result.Parameters()[0], result.Parameters()[1], field)
	case types.StructKind:
		return s.isAssignableObject(result.TypeName(), field)
	}
	return false
}

func (s scope) isAssignableList(element *types.Type, field common.Schema) bool {
	if field.Type() == "array" && field.Items() != nil {
		return s.isAssignable(element, field.Items())
	}
	return s.isAssignable(element, expression.Anything) && (expression.Untyped(field) || field.Type() == "array" && field.IsXPreserveUnknownFields())
}

// isAssignableMap accepts a map for an object if at least one field of the object accepts the map's
// values. The type does not say which keys the map has, so {}, whose values are dyn, is any object.
func (s scope) isAssignableMap(key, value *types.Type, field common.Schema) bool {
	if key.Kind() != types.StringKind && key.Kind() != types.DynKind || field.Type() != "object" && !expression.Untyped(field) {
		return false
	}
	if value.Kind() == types.DynKind {
		return true
	}
	for _, member := range field.Properties() {
		if s.isAssignable(value, member) {
			return true
		}
	}
	other := expression.Member(field, "")
	return other != nil && s.isAssignable(value, other)
}

// isAssignableObject accepts an object of the source if the field has one of its members, and no other type for another one.
func (s scope) isAssignableObject(name string, field common.Schema) bool {
	declared := s.Declared(name)
	if declared == nil || field.Type() != "object" && !expression.Untyped(field) {
		return false
	}
	shared := len(declared.Fields) == 0
	for escaped, member := range declared.Fields {
		name, _ := apiservercel.Unescape(escaped)
		of := expression.Anything
		if !expression.Untyped(field) {
			of = expression.Member(field, name)
		}
		if of != nil && !s.isAssignable(member.Type.CelType(), of) {
			return false
		}
		shared = shared || of != nil
	}
	return shared
}

// typeOf returns the name of a field's type.
func typeOf(s common.Schema) string {
	values := s.AdditionalProperties()
	switch {
	case s.IsXIntOrString():
		return "integer or string"
	case expression.Untyped(s):
		return "anything"
	case s.Type() == "array" && s.Items() != nil:
		return "array of " + typeOf(s.Items())
	case values != nil && values.Schema() != nil:
		return "map of " + typeOf(values.Schema())
	case expression.Format(s) != "":
		return s.Type() + " of format " + s.Format()
	}
	return s.Type()
}
