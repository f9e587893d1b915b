// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"cmp"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// checkResult holds the results of an expression against what the field holds.
// It looks through what makes them dyn, or optional: each branch of a choice, what
// is put in dyn(), or in optional.of(). So a wrong one is found among them.
func (s *side) checkResult(typed *ast.AST, e ast.Expr, field *schema.Structural) error {
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
				return nil // whoever writes dyn() there asks for what is checked once it is there
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
func (s *side) checkType(result *types.Type, field *schema.Structural) error {
	result = inOptional(result)
	if result.Kind() == types.NullTypeKind ||
		s.gives(result, field) && (result.Kind() != types.DynKind || untyped(field) || field.XIntOrString) {
		return nil
	}
	failed := &TypeError{Result: strings.ReplaceAll(result.String(), selfType, selfName), Field: typeOf(field)}
	convert, scalar := conversions[field.Type]
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
func (s *side) gives(result *types.Type, field *schema.Structural) bool {
	switch result.Kind() {
	case types.DynKind:
		return true
	case types.NullTypeKind:
		return field.Nullable || untyped(field)
	case types.BoolKind:
		return field.Type == "boolean" || untyped(field)
	case types.IntKind:
		return field.Type == "integer" || field.Type == "number" || field.XIntOrString || untyped(field)
	case types.DoubleKind:
		return field.Type == "number" || untyped(field)
	case types.StringKind:
		return field.Type == "string" || field.XIntOrString || untyped(field)
	case types.BytesKind:
		return formatOf(field) == "byte" || untyped(field)
	case types.DurationKind:
		return formatOf(field) == "duration" || untyped(field)
	case types.TimestampKind:
		return formatOf(field) == "date" || formatOf(field) == "date-time" || untyped(field)
	case types.ListKind:
		return s.givesList(result.Parameters()[0], field)
	case types.MapKind:
		return s.givesMap(result.Parameters()[0], result.Parameters()[1], field)
	case types.StructKind:
		return s.givesObject(result.TypeName(), field)
	}
	return false
}

func (s *side) givesList(element *types.Type, field *schema.Structural) bool {
	if field.Type == "array" && field.Items != nil {
		return s.gives(element, field.Items)
	}
	return s.gives(element, anything) && (untyped(field) || field.Type == "array" && field.XPreserveUnknownFields)
}

// givesMap lets a map be an object whose fields the values can be, one at least:
// which of them there are, the type does not say.
func (s *side) givesMap(key, value *types.Type, field *schema.Structural) bool {
	if key.Kind() != types.StringKind && key.Kind() != types.DynKind || field.Type != "object" && !untyped(field) {
		return false
	}
	for _, member := range field.Properties {
		if s.gives(value, &member) {
			return true
		}
	}
	other := memberOf(field, "")
	return other != nil && s.gives(value, other)
}

// givesObject lets an object of the source be one of a field that has all of its members.
func (s *side) givesObject(name string, field *schema.Structural) bool {
	declared := apiservercel.FieldTypeMap(selfType, s.self)[name]
	if declared == nil || field.Type != "object" && !untyped(field) {
		return false
	}
	for escaped, member := range declared.Fields {
		name, _ := apiservercel.Unescape(escaped)
		of := anything
		if !untyped(field) {
			of = memberOf(field, name)
		}
		if of == nil || !s.gives(member.Type.CelType(), of) {
			return false
		}
	}
	return true
}

// typeOf names what a field holds.
func typeOf(s *schema.Structural) string {
	switch {
	case s.XIntOrString:
		return "integer or string"
	case untyped(s):
		return "anything"
	case s.Type == "array" && s.Items != nil:
		return "array of " + typeOf(s.Items)
	case s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil:
		return "map of " + typeOf(s.AdditionalProperties.Structural)
	case formatOf(s) != "":
		return s.Type + " of format " + formatOf(s)
	}
	return s.Type
}
