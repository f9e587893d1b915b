// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"fmt"
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/conversion/expression"
)

// programs are the expressions of a CEL, compiled.
type programs struct {
	forward, backward *expression.Program
	// spoke and hub name the fields of either side that are computed first, as a
	// policy does.
	spoke, hub string
}

// compile compiles the expressions of a scope and of those in it, once for both
// ways. The path leads to the scope.
func (w *direction) compile(at Path) error {
	for i := range w.exchanges {
		cel := w.exchanges[i].CEL
		if cel == nil {
			continue
		}
		compiled, err := cel.compile()
		if err != nil {
			return err
		}
		compiled.spoke = slices.Concat(at, w.exchanges[i].Spoke[0].Path).String()
		compiled.hub = slices.Concat(at, w.exchanges[i].Hub[0].Path).String()
		w.exchanges[i].programs, w.back.exchanges[i].programs = compiled, compiled
	}
	for i := range w.collections {
		in := append(slices.Concat(at, w.collections[i].path.names()), Each)
		if err := w.collections[i].way.compile(in); err != nil {
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
	forward, err := expression.New(spoke, hub)
	if err != nil {
		return nil, err
	}
	backward, err := expression.New(hub, spoke)
	return &programs{forward: forward, backward: backward}, err
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

// convert computes the fields of the other side. If that costs more than an
// object may, the conversion ends.
func (p *programs) convert(h *step, values []*node, toHub bool) []*node {
	program, field := p.backward, p.spoke
	if toHub {
		program, field = p.forward, p.hub
	}
	texts := make([][]byte, len(values))
	for i, value := range values {
		if value != nil {
			texts[i] = h.bytes(value)
		}
	}
	results := h.evaluate(program, texts, field)
	images := h.lists.take(len(results))
	for i, text := range results {
		if text != nil {
			images[i] = h.raw(text)
		}
	}
	return images
}

// evaluate spends of the object's budget. It has no results once that is exhausted.
func (h *step) evaluate(program *expression.Program, texts [][]byte, field string) [][]byte {
	budget := &h.meter.expressions
	before := budget.Spent()
	results := program.Evaluate(texts, budget)
	if budget.Exhausted() && h.meter.err == nil {
		h.meter.end(&BudgetError{Field: field, Cost: budget.Spent(), Limit: expression.BudgetLimit})
	}
	h.spend(int(budget.Spent()-before) / costUnits)
	return results
}
