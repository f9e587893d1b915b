// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"maps"
	"slices"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// Selecting is the bit of a seed with which rules select elements of lists.
const Selecting = 1 << 37

func (c *Choices) isSelecting() bool { return c.seed&Selecting != 0 }

// pairsElements reports whether an each rule may pair what is in two values.
func pairsElements(a, b *props) bool {
	of, other := elements(a), elements(b)
	switch {
	case of != nil && other != nil:
		return true
	case of != nil:
		return a.Items != nil && b.Items == nil && of.Type == b.Type
	}
	return other != nil && b.Items != nil && other.Type == a.Type
}

// each generates an each rule, with a key where it is needed, and sometimes rules for the elements.
func (m *ruleMaker) each(from, to namedField) []v1alpha1.Rule {
	rule := &v1alpha1.EachRule{From: from.path, To: to.path}
	spoke, hub := elements(from.schema), elements(to.schema)
	if isMap(from.schema) != isMap(to.schema) && spoke != nil && hub != nil || m.Rarely(6) {
		rule.Key = m.key(from, to)
	}
	if m.isSelecting() && m.IntN(2) == 0 {
		rule.Where = m.conditions(from.schema, to.schema)
	}
	rules := []v1alpha1.Rule{{Each: rule}}
	if spoke == nil || hub == nil {
		return rules
	}
	element := func(field namedField, of *props) namedField {
		return namedField{field.path + "[*]", string(field.path + "[*]"), of}
	}
	left, right := element(from, spoke), element(to, hub)
	switch {
	case len(valueFields(hub, spoke)) > 0:
		right = fieldOf(right, One(m.Choices, valueFields(hub, spoke)...))
	case len(valueFields(spoke, hub)) > 0:
		left = fieldOf(left, One(m.Choices, valueFields(spoke, hub)...))
	case spoke.Type == "object" && hub.Type == "object" && len(spoke.Properties) > 0 && len(hub.Properties) > 0:
		left, right = fieldOf(left, One(m.Choices, slices.Sorted(maps.Keys(spoke.Properties))...)), fieldOf(right, One(m.Choices, slices.Sorted(maps.Keys(hub.Properties))...))
	}
	for _, kind := range []string{"move", "cast", "values"} {
		if mayFit(kind, left.schema, right.schema) && m.Often(3) {
			if inner, made := m.rule(kind, left, right); made {
				return append(rules, inner)
			}
		}
	}
	return rules
}

func isMap(s *props) bool { return s.AdditionalProperties != nil }

// fieldOf returns a field of elements.
func fieldOf(element namedField, name string) namedField {
	field := element.schema.Properties[name]
	return namedField{element.path + v1alpha1.Path(quotedName(name)), element.scope, &field}
}

// conditions selects elements of the spoke, the hub, or both.
func (m *ruleMaker) conditions(spoke, hub *props) (all []v1alpha1.EachCondition) {
	for ofHub, list := range []*props{spoke, hub} {
		if where := m.condition(list, ofHub == 1); where != nil && m.IntN(2) == 0 {
			all = append(all, *where)
		}
	}
	return all
}

// condition selects elements of a list, nil if these are no objects.
func (m *ruleMaker) condition(list *props, ofHub bool) *v1alpha1.EachCondition {
	where := &v1alpha1.EachCondition{}
	if list.Items == nil || list.Items.Schema.Type != "object" || len(list.Items.Schema.Properties) == 0 {
		return nil
	}
	name := One(m.Choices, slices.Sorted(maps.Keys(list.Items.Schema.Properties))...)
	if len(list.XListMapKeys) > 0 {
		name = list.XListMapKeys[0]
	}
	if where.From = v1alpha1.Path(quotedName(name)); ofHub {
		where.From, where.To = "", where.From
	}
	if list.Items.Schema.Properties[name].Type == "string" && m.IntN(2) == 0 {
		where.Values = Shuffled(m.Choices, tableValues["string"])[:1+m.IntN(3)]
	}
	return where
}

// selections returns each rules that select elements of the lists that both versions have.
func (m *ruleMaker) selections() (rules []v1alpha1.Rule) {
	for _, list := range m.spoke {
		at := slices.IndexFunc(m.hub, func(field namedField) bool { return field.path == list.path })
		if at < 0 || list.schema.Items == nil || m.hub[at].schema.Items == nil || m.Rarely(8) {
			continue
		}
		if where := m.conditions(list.schema, m.hub[at].schema); len(where) > 0 {
			rules = append(rules, v1alpha1.Rule{Each: &v1alpha1.EachRule{From: list.path, To: list.path, Where: where}})
		}
	}
	return rules
}

// picks returns moves between single fields and those of one element of a list that has keys.
func (m *ruleMaker) picks() (rules []v1alpha1.Rule) {
	for ofHub, own := range [][]namedField{m.spoke, m.hub} {
		others := [][]namedField{m.hub, m.spoke}[ofHub]
		for _, list := range own {
			if len(list.schema.XListMapKeys) != 1 || m.Rarely(4) {
				continue
			}
			key := list.schema.XListMapKeys[0]
			element := list.path + v1alpha1.Path("["+key+"="+One(m.Choices, "a", "b")+"]")
			for _, name := range slices.Sorted(maps.Keys(list.schema.Items.Schema.Properties)) {
				field := list.schema.Items.Schema.Properties[name]
				alike := slices.DeleteFunc(slices.Clone(others), func(other namedField) bool {
					return name == key || other.scope != list.scope || other.schema.Type != field.Type
				})
				if len(alike) == 0 {
					continue
				}
				move := &v1alpha1.MoveRule{From: element + v1alpha1.Path(quotedName(name)), To: One(m.Choices, alike...).path}
				if ofHub == 1 {
					move.From, move.To = move.To, move.From
				}
				rules = append(rules, v1alpha1.Rule{Move: move})
			}
		}
	}
	return rules
}
