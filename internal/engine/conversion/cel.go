// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"cmp"
	"slices"

	"k8s.io/apiserver/pkg/cel/common"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/expression"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// computesSpoke and computesHub report whether the rule computes fields of a side.
func (c *CEL) computesSpoke() bool { return len(computed(c.Spoke)) > 0 }
func (c *CEL) computesHub() bool   { return len(computed(c.Hub)) > 0 }

// computed returns the indexes of the fields that have an expression.
func computed(fields []CELField) (indexes []int) {
	for i := range fields {
		if fields[i].Expression != "" {
			indexes = append(indexes, i)
		}
	}
	return indexes
}

// at returns the elements with these indexes.
func at[T any](all []T, indexes []int) []T {
	some := make([]T, len(indexes))
	for i, index := range indexes {
		some[i] = all[index]
	}
	return some
}

// compile returns what computes the fields of the hub, and those of the spoke; nil for fields without expressions. They read
// the fields of the other side, and then those around it.
func (c *CEL) compile(ofSpoke, ofHub []common.Schema) (forward, backward *expression.Program, err error) {
	spoke, hub := expressionFields(c.Spoke, c.SpokeAround, ofSpoke), expressionFields(c.Hub, c.HubAround, ofHub)
	if c.computesHub() {
		if forward, err = expression.New(spoke, at(hub, computed(c.Hub))); err != nil {
			return nil, nil, err
		}
	}
	if c.computesSpoke() {
		backward, err = expression.New(hub, at(spoke, computed(c.Spoke)))
	}
	return forward, backward, err
}

// FromNothing returns the indexes of the fields of either side that the expressions compute if all
// fields of the other side are missing. The schemas are those of the fields of each side, and then of those around it; all
// other values may be anything. It fails if an expression does not compile.
func (c *CEL) FromNothing(ofSpoke, ofHub []common.Schema) (spoke, hub []int, err error) {
	forward, backward, err := c.compile(ofSpoke, ofHub)
	if err != nil {
		return nil, nil, err
	}
	fromNothing := func(program *expression.Program, from int, to []CELField) (indexes []int) {
		if program == nil {
			return nil
		}
		a := tree.NewArena()
		defer a.Free()
		in := expression.Input{Values: make([]*tree.Node, from), WhenMissing: true, Name: a.NewText("name"), Namespace: a.NewText("namespace")}
		for i, result := range program.Evaluate(a, in, new(expression.Budget)) {
			if result != nil {
				indexes = append(indexes, computed(to)[i])
			}
		}
		return indexes
	}
	return fromNothing(backward, len(c.Hub)+len(c.HubAround), c.Spoke), fromNothing(forward, len(c.Spoke)+len(c.SpokeAround), c.Hub), nil
}

func expressionFields(fields []CELField, around []FieldAround, schemas []common.Schema) []expression.Field {
	fields = slices.Clip(fields)
	for _, f := range around {
		fields = append(fields, f.CELField)
	}
	read := make([]expression.Field, len(fields))
	for i, field := range fields {
		read[i] = expression.Field{Name: field.Name, Schema: expression.Anything, Expression: field.Expression}
		if i < len(schemas) {
			read[i].Schema = schemas[i]
		}
	}
	return read
}

// types returns the schemas of fields of expressions, and of fields around them.
func (s side) types(fields []Field, around []FieldAround) []common.Schema {
	var types []common.Schema
	for _, f := range fields {
		types = append(types, s.typeAt(f.Path))
	}
	for _, f := range around {
		of := &s
		for range f.Up {
			of = cmp.Or(of.around, of)
		}
		types = append(types, of.typeAt(f.Path))
	}
	return types
}

// typeAt returns the schema of a field of expressions. Labels and annotations are texts, whatever the schema says.
func (s side) typeAt(path Path) common.Schema {
	switch found := shapeAt(s.shape, path); {
	case s.around == nil && path[0] == "metadata":
		return expression.TypesOf(shape.Text)
	case found != nil:
		return expression.TypesOf(found)
	}
	return expression.Anything
}
