// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"maps"
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// Prune returns a value without what the API server would prune: members that the schema does
// not declare, and nulls of members that cannot be null. It replaces such a null by the default if the
// schema has one, as the API server does. It returns false if a value is not of the type
// of its schema. Other limits do not matter.
func (s *Schema) Prune(a *tree.Arena, n *tree.Node) (pruned *tree.Node, isOfType bool) {
	if n.Is(tree.Null) {
		return n, true
	}
	isOfType = s.isOfType(n)
	pruned = a.Filter(n, func(name string, value *tree.Node) *tree.Node {
		of := s.in(n, name)
		switch {
		case of == nil || !isOfType:
			return nil
		case value.Is(tree.Null) && !of.effect.nullable && of.Fallback != nil:
			return of.fallback(a)
		case value.Is(tree.Null) && !of.effect.nullable && n.Is(tree.Object):
			return nil // the API server removes no elements
		}
		inner, fits := of.Prune(a, value)
		isOfType = isOfType && fits
		return inner
	})
	return pruned, isOfType
}

// in returns the schema of a member, or of an element.
func (s *Schema) in(n *tree.Node, name string) *Schema {
	if n.Is(tree.List) {
		return s.Items()
	}
	return s.Field(name)
}

// fallback returns the default, with all defaults in it filled in.
func (s *Schema) fallback(a *tree.Arena) *tree.Node {
	value, err := a.Read(s.Fallback)
	if err != nil {
		return nil // cannot happen: it was read from JSON
	}
	return s.FillDefaults(a, value)
}

// FillDefaults returns a value of the schema's type with the defaults that the API server fills in
// when it reads a stored object.
func (s *Schema) FillDefaults(a *tree.Arena, n *tree.Node) *tree.Node {
	if !s.defaulted {
		return n
	}
	filled := a.Filter(n, func(name string, value *tree.Node) *tree.Node {
		if of := s.in(n, name); of != nil {
			return of.FillDefaults(a, value)
		}
		return value
	})
	if !n.Is(tree.Object) {
		return filled
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if of := s.Properties[name]; of.Fallback != nil && filled.Get(name) == nil {
			filled = a.With(filled, name, of.fallback(a))
		}
	}
	return filled
}

// AddPruned returns a value with the members of another value that Prune removes, in all objects that both
// have, and reports whether there are any. Elements of lists are not compared.
func (s *Schema) AddPruned(a *tree.Arena, value, other *tree.Node) (all *tree.Node, added bool) {
	if !value.Is(tree.Object) {
		return value, false
	}
	for _, m := range other.Members() {
		member, adds := m.Value, true
		if inner := s.Field(m.Name); inner != nil {
			member, adds = inner.AddPruned(a, value.Get(m.Name), member)
		}
		if adds {
			value, added = a.With(value, m.Name, member), true
		}
	}
	return value, added
}
