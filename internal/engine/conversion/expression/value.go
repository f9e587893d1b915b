// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apiserver/pkg/cel/common"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// errUnreadable is the result of reading a value that does not have the type of its schema, or a
// number without an exact CEL value.
var errUnreadable = errors.New("the value is not of the type that the schema says, or not exact")

// readValue returns the CEL value of a field, with the semantics of validation rules: equality
// of lists by their keys, dates and durations. It returns nil for nil and for null, because
// validation rules treat a nullable field that is null as missing.
func readValue(n *tree.Node, s common.Schema) ref.Val {
	if n == nil || n.Is(tree.Null) {
		return nil
	}
	value, fits := plain(n, shapeOf(s))
	switch {
	case !fits:
		return types.WrapErr(errUnreadable)
	case IsOpaque(s):
		return types.DefaultTypeAdapter.NativeToValue(value)
	}
	return common.UnstructuredToVal(value, s)
}

// plain returns a value as the API server decodes it, and reports whether it and all its content have the types of the schema,
// with exact numbers. CEL values only check that when they are used; for equality, whether they do depends on the order of
// a map.
func plain(n *tree.Node, s *shape.Schema) (value any, fits bool) {
	is := func(kind shape.Kind) bool { return s.Kind == kind || s.Kind == shape.AnyKind }
	switch n.Kind() {
	case tree.Null:
		return nil, s.IsNullable() || is(shape.AnyKind)
	case tree.Bool:
		return string(n.JSON()) == "true", is(shape.BooleanKind)
	case tree.Number:
		return number(string(n.JSON()), is)
	case tree.String:
		hasFormat := func() bool { return s.Format == "" || !types.IsError(common.UnstructuredToVal(n.Text(), TypesOf(s))) }
		return n.Text(), is(shape.IntOrStringKind) || is(shape.StringKind) && hasFormat()
	case tree.List:
		return plainList(n, s.Items())
	}
	return plainObject(n, s, is(shape.ObjectKind))
}

// number returns an integer as int64, and any other number as float64, as the API server does, but rounds no integer.
func number(text string, is func(shape.Kind) bool) (value any, fits bool) {
	if strings.ContainsAny(text, ".eE") {
		float, err := strconv.ParseFloat(text, 64)
		return float, err == nil && is(shape.NumberKind)
	}
	integer, err := strconv.ParseInt(text, 10, 64)
	double := float64(integer)
	isExact := double < math.MaxInt64 && int64(double) == integer
	return integer, err == nil && (is(shape.IntegerKind) || is(shape.IntOrStringKind) || is(shape.NumberKind) && isExact)
}

func plainList(n *tree.Node, of *shape.Schema) (value any, fits bool) {
	list := make([]any, n.Len())
	fits = of != nil
	for i, element := range n.Elems() {
		if !fits {
			return nil, false
		}
		list[i], fits = plain(element, of)
	}
	return list, fits
}

// plainObject keeps a null member, which is a missing field, and members that the schema does not name, because no
// expression reads them.
func plainObject(n *tree.Node, s *shape.Schema, isObject bool) (value any, fits bool) {
	object := make(map[string]any, n.Len())
	fits = isObject
	for _, m := range n.Members() {
		of := s.Field(m.Name)
		if of == nil {
			of = shape.Anything()
		}
		if _, named := s.Properties[m.Name]; named && m.Value.Is(tree.Null) {
			object[m.Name] = nil
			continue
		}
		var inside bool
		object[m.Name], inside = plain(m.Value, of)
		fits = fits && inside
	}
	return object, fits
}
