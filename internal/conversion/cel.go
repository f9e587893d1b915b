// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"fmt"

	"github.com/conversion-operator/conversion-operator/internal/conversion/expression"
)

// programs are the expressions of a CEL, compiled.
type programs struct{ forward, backward *expression.Program }

// compile compiles the expressions of a scope and of those in it, once for both ways.
func (w *way) compile() error {
	for i := range w.exchanges {
		cel := w.exchanges[i].CEL
		if cel == nil {
			continue
		}
		compiled, err := cel.compile()
		if err != nil {
			return err
		}
		w.exchanges[i].programs, w.back.exchanges[i].programs = compiled, compiled
	}
	for i := range w.collections {
		if err := w.collections[i].way.compile(); err != nil {
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
	return &programs{forward, backward}, err
}

func expressionFields(fields []CELField) ([]expression.Field, error) {
	read := make([]expression.Field, len(fields))
	for i, field := range fields {
		schema, err := expression.ReadShape(field.Schema)
		if err != nil {
			return nil, fmt.Errorf("the field %s: %w", field.Name, err)
		}
		read[i] = expression.Field{Name: field.Name, Schema: schema, Expression: field.Expression}
	}
	return read, nil
}

// convert computes the fields of the other side.
func (p *programs) convert(h *hop, values []*node, toHub bool) []*node {
	program := p.backward
	if toHub {
		program = p.forward
	}
	texts := make([][]byte, len(values))
	for i, value := range values {
		if value != nil {
			texts[i] = h.bytes(value)
		}
	}
	results := program.Evaluate(texts)
	images := h.lists.take(len(results))
	for i, text := range results {
		if text != nil {
			images[i] = h.raw(text)
		}
	}
	return images
}
