// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"maps"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// relocate moves objects, lists and maps to other objects: out of an object to the root, from there into an
// object, or into one that only this version has.
func (c *Choices) relocate(s *props) {
	c.relocateInElements(s)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		object := s.Properties[name]
		for _, inner := range slices.Sorted(maps.Keys(object.Properties)) {
			list := object.Properties[inner]
			if _, taken := s.Properties[inner]; movesWithRules(&list) && !taken && c.Rarely(3) && !slices.Contains(object.Required, inner) {
				delete(object.Properties, inner)
				s.Properties[inner] = list
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		list := s.Properties[name]
		into, other := One(c, append(slices.Clip(fieldNames), "spec")...), One(c, fieldNames...)
		object, there := s.Properties[into]
		if !there {
			object = props{Type: "object", Properties: map[string]props{}}
		}
		_, taken := object.Properties[other]
		if movesWithRules(&list) && name != into && object.Properties != nil && object.Items == nil && !taken && c.IntN(2) == 0 && !slices.Contains(s.Required, name) {
			delete(s.Properties, name)
			object.Properties[other] = list
			s.Properties[into] = object
		}
	}
}

// relocateInElements moves objects, lists and maps in elements, at any depth, to an object of their own.
func (c *Choices) relocateInElements(s *props) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		field := s.Properties[name]
		c.relocateInElements(&field)
	}
	of := elements(s)
	if of == nil {
		return
	}
	c.relocateInElements(of)
	for _, name := range slices.Sorted(maps.Keys(of.Properties)) {
		field, into := of.Properties[name], One(c, fieldNames...)
		if _, taken := of.Properties[into]; !taken && movesWithRules(&field) && c.Often(3) {
			delete(of.Properties, name)
			elementsOrSelf(&field).Properties[One(c, fieldNames...)] = c.scalar() // without a difference, it moves as a whole
			of.Properties[into] = props{Type: "object", Properties: map[string]props{One(c, fieldNames...): field}}
		}
	}
}

// listOfContainers returns a list, with or without keys, whose elements have an object, list or map.
func (c *Choices) listOfContainers() props {
	list := listOf(c.structure(0))
	element := list.Items.Schema
	element.Properties[One(c, fieldNames...)] = One(c, c.structure(0), listOf(c.structure(0)), mapOf(c.structure(0)))
	if c.Often(3) {
		element.Properties["name"], element.Required = props{Type: "string"}, []string{"name"}
		list.XListType, list.XListMapKeys = new("map"), []string{"name"}
	}
	return list
}

// movesWithRules reports whether a schema is an object, or a list or map of objects.
func movesWithRules(s *props) bool {
	of := elementsOrSelf(s)
	return of != nil && of.Type == "object" && of.Properties != nil
}

// elementsOrSelf returns the schema of the elements of a list or map, or that of an object itself.
func elementsOrSelf(s *props) *props {
	if of := elements(s); of != nil {
		return of
	}
	return s
}

// placedMoves returns moves between objects, lists and maps of two schemas that are in different objects, with the
// moves in them.
func (c *Choices) placedMoves(spoke, hub *props, spokeAt, hubAt string, made []v1alpha1.Rule) (moves []v1alpha1.Rule) {
	others := Shuffled(c, relocatable(hub, hubAt))
	for _, from := range relocatable(spoke, spokeAt) {
		for i, to := range others {
			taken := slices.ContainsFunc(made, func(rule v1alpha1.Rule) bool {
				return rule.Move != nil && (rule.Move.From == from.path || rule.Move.To == to.path)
			})
			if taken || strings.TrimPrefix(parentOf(from.path), spokeAt) == strings.TrimPrefix(parentOf(to.path), hubAt) || (from.schema.Items == nil) != (to.schema.Items == nil) || (from.schema.AdditionalProperties == nil) != (to.schema.AdditionalProperties == nil) || from.schema.Nullable != to.schema.Nullable || !haveCommon(from.schema, to.schema) && c.Often(4) || c.Rarely(6) {
				continue
			}
			moves = append(moves, moveOf(string(from.path), string(to.path)))
			moves = append(moves, c.nestedMoves(from.schema, to.schema, string(from.path), string(to.path))...)
			others = slices.Delete(others, i, i+1)
			break
		}
	}
	return moves
}

// haveCommon reports whether the elements of two lists have a field with the same name and type.
func haveCommon(list, other *props) bool {
	fields := elementsOrSelf(other).Properties
	for name, field := range elementsOrSelf(list).Properties {
		if partner, both := fields[name]; both && partner.Type == field.Type {
			return true
		}
	}
	return false
}

func parentOf(path v1alpha1.Path) string {
	return string(path[:max(strings.LastIndex(string(path), "."), strings.LastIndex(string(path), "["))])
}

// relocatable returns the objects, and the lists and maps of objects, that are in no list or map.
func relocatable(s *props, at string) (found []namedField) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		field, path := s.Properties[name], at+quotedName(name)
		if movesWithRules(&field) {
			found = append(found, namedField{path: v1alpha1.Path(path), schema: &field})
		}
		if field.Items == nil && field.AdditionalProperties == nil {
			found = append(found, relocatable(&field, path)...)
		}
	}
	return found
}
