// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package celcheck

import (
	"cmp"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/conversion-operator/conversion-operator/internal/conversion/expression"
)

// checkResult holds the results of an expression against what the field holds.
// It looks through what makes them dyn, or optional: each branch of a choice, what
// is put in dyn(), or in optional.of(). So a wrong one is found among them.
func (s scope) checkResult(typed *ast.AST, e ast.Expr, field *expression.Schema) error {
	switch e.Kind() {
	case ast.ComprehensionKind:
		return s.checkResult(typed, e.AsComprehension().Result(), field) // of optMap; of a loop it has the type of the whole
	case ast.CallKind:
		args := e.AsCall().Args()
		switch e.AsCall().FunctionName() {
		case operators.Conditional:
			return cmp.Or(s.checkResult(typed, args[1], field), s.checkResult(typed, args[2], field))
		case "dyn":
			if typed.GetType(args[0].ID()).Kind() == types.DynKind {
				return nil // the client that writes dyn() there asks for what is checked once it is there
			}
			return s.checkResult(typed, args[0], field)
		case "optional.of", "optional.ofNonZeroValue":
			return s.checkResult(typed, args[0], field)
		case "optional.none":
			return nil
		}
	}
	return s.checkType(typed.GetType(e.ID()), field)
}

// checkType holds the type of a result against what the field holds. What cannot
// be known before it runs, the members of a map for one, is checked then.
func (s scope) checkType(result *types.Type, field *expression.Schema) error {
	result = inOptional(result)
	if result.Kind() == types.NullTypeKind ||
		s.gives(result, field) && (result.Kind() != types.DynKind || field.Untyped() || field.IsXIntOrString()) {
		return nil
	}
	failed := &TypeError{Result: expression.Readable(result.String()), Field: typeOf(field)}
	convert, scalar := conversions[field.Type()]
	switch {
	case scalar && result.Kind() != types.ListKind && result.Kind() != types.MapKind:
		failed.Hint = "convert it with " + convert
	case result.Kind() == types.DynKind:
		failed.Hint = "put it in dyn() to have it checked each time"
	}
	return failed
}

// inOptional is the type of what an optional value holds.
func inOptional(t *types.Type) *types.Type {
	if t.Kind() == types.OpaqueKind && t.TypeName() == types.OptionalType.TypeName() {
		return t.Parameters()[0]
	}
	return t
}

// conversions make values of the types of fields.
var conversions = map[string]string{"integer": "int()", "number": "double()", "string": "string()", "boolean": "bool()"}

// gives reports whether a value of a type can be one of a field. Dyn can be
// anything: inside of a map it is how an expression writes members of several types.
func (s scope) gives(result *types.Type, field *expression.Schema) bool {
	switch result.Kind() {
	case types.DynKind:
		return true
	case types.NullTypeKind:
		return field.Nullable() || field.Untyped()
	case types.BoolKind:
		return field.Type() == "boolean" || field.Untyped()
	case types.IntKind:
		return field.Type() == "integer" || field.Type() == "number" || field.IsXIntOrString() || field.Untyped()
	case types.DoubleKind:
		return field.Type() == "number" || field.Untyped()
	case types.StringKind:
		return field.Type() == "string" || field.IsXIntOrString() || field.Untyped()
	case types.BytesKind:
		return field.Format() == "byte" || field.Untyped()
	case types.DurationKind:
		return field.Format() == "duration" || field.Untyped()
	case types.TimestampKind:
		return field.Format() == "date" || field.Format() == "date-time" || field.Untyped()
	case types.ListKind:
		return s.givesList(result.Parameters()[0], field)
	case types.MapKind:
		return s.givesMap(result.Parameters()[0], result.Parameters()[1], field)
	case types.StructKind:
		return s.givesObject(result.TypeName(), field)
	}
	return false
}

func (s scope) givesList(element *types.Type, field *expression.Schema) bool {
	if field.Type() == "array" && field.Element() != nil {
		return s.gives(element, field.Element())
	}
	return s.gives(element, expression.Anything) && (field.Untyped() || field.Type() == "array" && field.IsXPreserveUnknownFields())
}

// givesMap lets a map be an object whose fields the values can be, one at least:
// which of them there are, the type does not say.
func (s scope) givesMap(key, value *types.Type, field *expression.Schema) bool {
	if key.Kind() != types.StringKind && key.Kind() != types.DynKind || field.Type() != "object" && !field.Untyped() {
		return false
	}
	for name := range field.Properties() {
		if s.gives(value, field.Member(name)) {
			return true
		}
	}
	other := field.Member("")
	return other != nil && s.gives(value, other)
}

// givesObject lets an object of the source be one of a field that has all of its members.
func (s scope) givesObject(name string, field *expression.Schema) bool {
	declared := s.Declared(name)
	if declared == nil || field.Type() != "object" && !field.Untyped() {
		return false
	}
	for escaped, member := range declared.Fields {
		name, _ := apiservercel.Unescape(escaped)
		of := expression.Anything
		if !field.Untyped() {
			of = field.Member(name)
		}
		if of == nil || !s.gives(member.Type.CelType(), of) {
			return false
		}
	}
	return true
}

// typeOf names what a field holds.
func typeOf(s *expression.Schema) string {
	switch {
	case s.IsXIntOrString():
		return "integer or string"
	case s.Untyped():
		return "anything"
	case s.Type() == "array" && s.Element() != nil:
		return "array of " + typeOf(s.Element())
	case s.Value() != nil:
		return "map of " + typeOf(s.Value())
	case s.Format() != "":
		return s.Type() + " of format " + s.Format()
	}
	return s.Type()
}
