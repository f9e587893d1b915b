// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"fmt"
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/expression"
)

// programs are the compiled expressions of a CEL.
type programs struct {
	forward, backward *expression.Program
	// spoke and hub are the paths, as in a policy, of the first field that is computed on either
	// side.
	spoke, hub string
}

// compileCEL compiles the expressions of a scope and its collections, for both directions. d is the
// direction to the hub. spoke and hub lead to the scope.
func (d *direction) compileCEL(spoke, hub Path) error {
	for i := range d.exchanges {
		cel := d.exchanges[i].CEL
		if cel == nil {
			continue
		}
		compiled, err := cel.compile()
		if err != nil {
			return err
		}
		compiled.spoke = slices.Concat(spoke, d.exchanges[i].Spoke[0].Path).String()
		compiled.hub = slices.Concat(hub, d.exchanges[i].Hub[0].Path).String()
		d.exchanges[i].programs, d.reverse.exchanges[i].programs = compiled, compiled
	}
	for i := range d.collections {
		c := &d.collections[i]
		spoke, hub := slices.Concat(spoke, c.path.path()), slices.Concat(hub, d.reverse.collections[i].path.path())
		if !c.isObject {
			spoke, hub = append(spoke, Each), append(hub, Each)
		}
		if err := c.direction.compileCEL(spoke, hub); err != nil {
			return err
		}
	}
	return nil
}

func (c *CEL) compile() (*programs, error) {
	spoke, err := expressionFields(c.Spoke)
	if err != nil {
		return nil, err
	}
	hub, err := expressionFields(c.Hub)
	if err != nil {
		return nil, err
	}
	forward, err := expression.New(spoke, hub, c.Bounds)
	if err != nil {
		return nil, err
	}
	backward, err := expression.New(hub, spoke, c.Bounds)
	return &programs{forward: forward, backward: backward}, err
}

// FromNothing returns the indexes of the fields of either side that the expressions compute if all
// fields of the other side are missing. It fails if an expression does not compile.
func (c *CEL) FromNothing() (spoke, hub []int, err error) {
	compiled, err := c.compile()
	if err != nil {
		return nil, nil, err
	}
	computed := func(program *expression.Program, from []CELField) (indexes []int) {
		in := expression.Input{Values: make([][]byte, len(from)), WhenMissing: true, Name: []byte(`"name"`), Namespace: []byte(`"namespace"`)}
		for i, text := range program.Evaluate(in, new(expression.Budget)) {
			if text != nil {
				indexes = append(indexes, i)
			}
		}
		return indexes
	}
	return computed(compiled.backward, c.Hub), computed(compiled.forward, c.Spoke), nil
}

func expressionFields(fields []CELField) ([]expression.Field, error) {
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

// convert computes the fields of the other side. It stops the conversion if that exceeds the
// object's budget.
func (p *programs) convert(s *step, values []*node, toHub, whenMissing bool) []*node {
	program, field := p.backward, p.spoke
	if toHub {
		program, field = p.forward, p.hub
	}
	texts := make([][]byte, len(values))
	for i, value := range values {
		if value != nil {
			texts[i] = s.bytes(value)
		}
	}
	results := s.evaluate(program, expression.Input{Values: texts, WhenMissing: whenMissing, Name: s.objectName, Namespace: s.objectNamespace}, field)
	images := s.lists.take(len(results))
	for i, text := range results {
		if text != nil {
			images[i] = s.raw(text)
		}
	}
	return images
}

// evaluate charges the object's budget, and has no results once that is exhausted.
func (s *step) evaluate(program *expression.Program, in expression.Input, field string) [][]byte {
	defer s.meter.untilNow()()
	for _, value := range in.Values {
		s.meter.take(celBytes * len(value))
	}
	if s.meter.err != nil {
		in.Values = make([][]byte, len(in.Values))
	}
	budget := &s.meter.expressions
	before := budget.Spent()
	results := program.Evaluate(in, budget)
	if budget.Exhausted() && s.meter.err == nil {
		s.meter.end(&BudgetError{Field: field, Cost: budget.Spent(), Limit: expression.BudgetLimit})
	}
	s.spend(int(budget.Spent()-before) / costUnits)
	return results
}
