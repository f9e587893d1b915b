// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"fmt"
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/expression"
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
func (c *CEL) compile() (forward, backward *expression.Program, err error) {
	spoke, err := expressionFields(c.Spoke, c.SpokeAround)
	if err != nil {
		return nil, nil, err
	}
	hub, err := expressionFields(c.Hub, c.HubAround)
	if err != nil {
		return nil, nil, err
	}
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
// fields of the other side are missing. It fails if an expression does not compile.
func (c *CEL) FromNothing() (spoke, hub []int, err error) {
	forward, backward, err := c.compile()
	if err != nil {
		return nil, nil, err
	}
	fromNothing := func(program *expression.Program, from int, to []CELField) (indexes []int) {
		if program == nil {
			return nil
		}
		in := expression.Input{Values: make([][]byte, from), WhenMissing: true, Name: []byte(`"name"`), Namespace: []byte(`"namespace"`)}
		for i, text := range program.Evaluate(in, new(expression.Budget)) {
			if text != nil {
				indexes = append(indexes, computed(to)[i])
			}
		}
		return indexes
	}
	return fromNothing(backward, len(c.Hub)+len(c.HubAround), c.Spoke), fromNothing(forward, len(c.Spoke)+len(c.SpokeAround), c.Hub), nil
}

func expressionFields(fields []CELField, around []FieldAround) ([]expression.Field, error) {
	fields = slices.Clip(fields)
	for _, f := range around {
		fields = append(fields, f.CELField)
	}
	read := make([]expression.Field, len(fields))
	for i, field := range fields {
		schema, err := expression.ReadSchema(field.Schema)
		if err != nil {
			return nil, fmt.Errorf("the field %s: %w", field.Name, err)
		}
		read[i] = expression.Field{Name: field.Name, Schema: schema, Expression: field.Expression}
	}
	return read, nil
}
