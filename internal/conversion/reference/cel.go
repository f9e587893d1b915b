// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"fmt"

	"github.com/conversion-operator/conversion-operator/internal/conversion/expression"
)

// evaluate computes fields by expressions. What expressions are is the business of
// package expression, and no part of the law.
func evaluate(from, to []celField) func([]any) []any {
	program, err := expression.New(read(from), read(to))
	if err != nil {
		panic(fmt.Sprintf("the plan was compiled with these expressions: %v", err))
	}
	return func(values []any) []any {
		texts := make([][]byte, len(values))
		for i, value := range values {
			if value != none {
				texts[i] = []byte(marshal(value))
			}
		}
		var images []any
		for _, text := range program.Evaluate(texts, new(expression.Budget)) {
			image, err := Decode(text)
			if text == nil || err != nil {
				image = none
			}
			images = append(images, image)
		}
		return images
	}
}

func read(fields []celField) []expression.Field {
	var all []expression.Field
	for _, f := range fields {
		schema, err := expression.ReadSchema(f.Schema)
		if err != nil {
			panic(fmt.Sprintf("the plan was compiled with this schema: %v", err))
		}
		all = append(all, expression.Field{Name: f.Name, Schema: schema, Expression: f.Expression})
	}
	return all
}
