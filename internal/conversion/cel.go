// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"fmt"

	"github.com/conversion-operator/conversion-operator/internal/conversion/expression"
)

// prepare compiles the expressions of a scope, and of those in it.
func (s *Scope) prepare() error {
	for i := range s.Exchanges {
		if cel := s.Exchanges[i].CEL; cel != nil {
			if err := cel.prepare(); err != nil {
				return err
			}
		}
	}
	for i := range s.Collections {
		if err := s.Collections[i].Scope.prepare(); err != nil {
			return err
		}
	}
	return nil
}

func (c *CEL) prepare() error {
	spoke, err := expressionFields(c.Spoke)
	if err != nil {
		return err
	}
	hub, err := expressionFields(c.Hub)
	if err != nil {
		return err
	}
	if c.forward, err = expression.New(spoke, hub); err != nil {
		return err
	}
	c.backward, err = expression.New(hub, spoke)
	return err
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
func (c *CEL) convert(values []*node, toHub bool) []*node {
	program := c.backward
	if toHub {
		program = c.forward
	}
	texts := make([][]byte, len(values))
	for i, value := range values {
		if value != nil {
			texts[i] = value.append(nil)
		}
	}
	images := make([]*node, 0, len(values))
	for _, text := range program.Evaluate(texts) {
		var image *node
		if text != nil {
			image = rawNode(text)
		}
		images = append(images, image)
	}
	return images
}
