// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/expression"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserve"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// bound is a function for the conversion of one object.
type bound struct {
	*function
	of *conversionRun
	// around are the values of the scopes around, and otherAround those of the other version.
	around, otherAround []*tree.Node
}

func (b bound) Apply(value *tree.Node, keepEmptied bool) *tree.Node {
	b.of.keepEmptied, b.of.scopes = keepEmptied, append(b.of.scopes[:0], b.around...)
	return b.apply(b.of, value)
}

// IsCostly leaves half of what expressions may cost to the conversion: an object with many edits stays readable.
func (b bound) IsCostly() bool { return b.of.expressions.Spent() > expression.BudgetLimit/2 }

func (b bound) Unread() *preserve.Paths   { return b.unread }
func (b bound) Dropped() *preserve.Paths  { return b.dropped }
func (b bound) Together() *preserve.Paths { return b.together }

func (b bound) Known() *preserve.Paths { return b.known }

func (b bound) Complete(at preserve.Address, made, preserved *tree.Node) *tree.Node {
	for _, d := range b.documents {
		if len(at) == len(d.path) && at.IsBelow(d.path, Each) {
			return b.of.completed(d.exchange, made, preserved)
		}
	}
	return nil
}

func (b bound) Parts() []preserve.Part {
	parts := make([]preserve.Part, len(b.parts))
	for i, p := range b.parts {
		parts[i] = p.Part
		parts[i].Reads = p.reads()
		parts[i].Functions = func(value, other *tree.Node) (function, back preserve.Function) {
			around, otherAround := valuesAt(b.around, value, p.scopes), valuesAt(b.otherAround, other, p.otherScopes)
			return bound{p.function, b.of, around, otherAround}, bound{p.back, b.of, otherAround, around}
		}
	}
	return parts
}

// valuesAt returns the values around a value, and those at paths in it.
func valuesAt(around []*tree.Node, value *tree.Node, paths [][]string) []*tree.Node {
	values := slices.Clip(around)
	for _, path := range paths {
		values = append(values, value.At(path))
	}
	return values
}
