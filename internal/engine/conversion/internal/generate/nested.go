// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"maps"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// Nested is the bit of a seed with which versions have other names for objects, lists and maps, and rules
// move these while other rules are for fields in them.
const Nested = 1 << 39

func (c *Choices) isNested() bool { return c.seed&Nested != 0 }

// renameContainers gives objects, lists, maps and keys other names.
func (c *Choices) renameContainers(s *props) {
	if s.Items != nil {
		c.renameContainers(s.Items.Schema)
		c.renameKey(s)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		c.renameContainers(s.AdditionalProperties.Schema)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		field := s.Properties[name]
		if !isContainer(&field) {
			continue
		}
		c.renameContainers(&field)
		s.Properties[name] = field
		other := One(c, fieldNames...)
		taken, isTaken := s.Properties[other]
		switch {
		case c.IntN(2) == 0 || slices.Contains(s.Required, name) || slices.Contains(s.Required, other):
		case !isTaken:
			delete(s.Properties, name)
			s.Properties[other] = field
		case c.Rarely(4):
			s.Properties[name], s.Properties[other] = taken, field
		}
	}
}

func isContainer(s *props) bool { return s.Type == "object" || s.Type == "array" }

// renameKey gives the key of a list's elements another name.
func (c *Choices) renameKey(list *props) {
	if len(list.XListMapKeys) != 1 || c.Often(3) {
		return
	}
	element, key, other := list.Items.Schema, list.XListMapKeys[0], "name"
	if key == other {
		other = "a"
	}
	if _, taken := element.Properties[other]; taken {
		return
	}
	element.Properties[other] = element.Properties[key]
	delete(element.Properties, key)
	list.XListMapKeys, element.Required = []string{other}, []string{other}
}

// nestedMoves returns moves between the objects, lists, maps and keys of two schemas that have other
// names, outer ones first.
func (c *Choices) nestedMoves(spoke, hub *props, from, to string) (moves []v1alpha1.Rule) {
	switch {
	case spoke.Items != nil && hub.Items != nil:
		element, other := spoke.Items.Schema, hub.Items.Schema
		if len(spoke.XListMapKeys) == 1 && len(hub.XListMapKeys) == 1 && spoke.XListMapKeys[0] != hub.XListMapKeys[0] && c.Often(4) {
			moves = append(moves, moveOf(from+"[*]."+spoke.XListMapKeys[0], to+"[*]."+hub.XListMapKeys[0]))
		}
		return c.movesInElements(element, other, from+"[*]", to+"[*]", moves)
	case spoke.AdditionalProperties != nil && hub.AdditionalProperties != nil && spoke.AdditionalProperties.Schema != nil && hub.AdditionalProperties.Schema != nil:
		return c.movesInElements(spoke.AdditionalProperties.Schema, hub.AdditionalProperties.Schema, from+"[*]", to+"[*]", nil)
	}
	free := Shuffled(c, slices.Sorted(maps.Keys(hub.Properties)))
	for _, name := range slices.Sorted(maps.Keys(spoke.Properties)) {
		field := spoke.Properties[name]
		at := slices.IndexFunc(free, func(other string) bool {
			partner, there := hub.Properties[other]
			_, both := hub.Properties[name]
			return there && isContainer(&field) && partner.Type == field.Type && (partner.Items == nil) == (field.Items == nil) && (other == name || !both || c.Rarely(6))
		})
		if _, both := hub.Properties[name]; both && c.Often(6) {
			at = slices.Index(free, name)
		}
		if at < 0 || c.Rarely(8) {
			continue
		}
		other := free[at]
		free = slices.Delete(free, at, at+1)
		partner := hub.Properties[other]
		left, right := from+quotedName(name), to+quotedName(other)
		if name != other {
			moves = append(moves, moveOf(left, right))
		}
		moves = append(moves, c.nestedMoves(&field, &partner, left, right)...)
	}
	return moves
}

func (c *Choices) movesInElements(spoke, hub *props, from, to string, moves []v1alpha1.Rule) []v1alpha1.Rule {
	moves = append(moves, c.nestedMoves(spoke, hub, from, to)...)
	return append(moves, c.placedMoves(spoke, hub, from, to, moves)...)
}

func moveOf(from, to string) v1alpha1.Rule {
	return v1alpha1.Rule{Move: &v1alpha1.MoveRule{From: v1alpha1.Path(from), To: v1alpha1.Path(to)}}
}

// quotedName returns a name as a part of a path.
func quotedName(name string) string {
	if strings.Contains(name, ".") {
		return `["` + name + `"]`
	}
	return "." + name
}

// atHub returns the path at the hub of a list or map in which the rules so far pair elements.
func (m *ruleMaker) atHub(scope string) string {
	from, to := "", ""
	for _, rule := range m.made {
		if rule.Move == nil || len(rule.Move.From) <= len(from) {
			continue
		}
		rest, found := strings.CutPrefix(scope, string(rule.Move.From))
		if found && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			from, to = string(rule.Move.From), string(rule.Move.To)
		}
	}
	return to + strings.TrimPrefix(scope, from)
}
