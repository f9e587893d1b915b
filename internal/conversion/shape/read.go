// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/conversion-operator/conversion-operator/internal/conversion/shape/internal/form"
)

// Read reads a schema that package strip wrote. It refuses unknown fields: ignoring a limit would
// admit values that do not fit.
func Read(text json.RawMessage) (*Schema, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var node *form.Node
	if err := decoder.Decode(&node); err != nil {
		return nil, fmt.Errorf("reading a stripped schema: %w", err)
	}
	if node == nil || decoder.More() {
		return nil, errors.New("reading a stripped schema: one object is expected")
	}
	if err := check(node); err != nil {
		return nil, fmt.Errorf("reading a stripped schema: %w", err)
	}
	return newSchema(node), nil
}

// check refuses a node that would make a Schema panic later.
func check(node *form.Node) error {
	if _, known := kinds[node.Type]; !known {
		return fmt.Errorf("the type %q is unknown", node.Type)
	}
	for name, member := range node.Properties {
		if member == nil {
			return fmt.Errorf("the field %q has no schema", name)
		}
	}
	for _, node := range subschemas(node) {
		if node == nil {
			return errors.New("a schema is null")
		}
		if err := check(node); err != nil {
			return err
		}
	}
	return nil
}

// subschemas returns the schemas directly inside of a node.
func subschemas(node *form.Node) []*form.Node {
	nodes := slices.Concat(node.AllOf, node.AnyOf, node.OneOf)
	for _, member := range node.Properties {
		nodes = append(nodes, member)
	}
	for _, single := range []*form.Node{node.Additional, node.Items, node.Not} {
		if single != nil {
			nodes = append(nodes, single)
		}
	}
	return nodes
}

func newSchema(node *form.Node) *Schema {
	if node.Embedded {
		node = declareObjectFields(node)
	}
	s := &Schema{node: node, kind: kinds[node.Type], preserve: node.Preserve}
	if node.IntOrString {
		s.kind = intOrStringKind
	}
	if node.Properties != nil {
		s.properties = make(map[string]*Schema, len(node.Properties))
	}
	for name, member := range node.Properties {
		s.properties[name] = newSchema(member)
	}
	if node.Additional != nil {
		s.additional = newSchema(node.Additional)
	}
	if node.Items != nil {
		s.items = newSchema(node.Items)
		s.items.markElement(s.preserve)
	}
	s.allOf, s.anyOf, s.oneOf = newSchemas(node.AllOf), newSchemas(node.AnyOf), newSchemas(node.OneOf)
	if node.Not != nil {
		s.not = newSchema(node.Not)
		s.not.markInJunctor()
	}
	s.limited, s.defaulted = hasLimits(node), s.holdsDefault()
	s.isText = isText(node)
	if node.Embedded {
		s.checkEmbedded()
	}
	return s
}

func newSchemas(nodes []*form.Node) []*Schema {
	var all []*Schema
	for _, node := range nodes {
		joined := newSchema(node)
		joined.markInJunctor()
		all = append(all, joined)
	}
	return all
}

// markInJunctor marks the schema, and all schemas in it, as part of allOf, anyOf, oneOf or not.
func (s *Schema) markInJunctor() {
	s.inJunctor = true
	for _, member := range s.properties {
		member.markInJunctor()
	}
	for _, single := range []*Schema{s.additional, s.items} {
		if single != nil {
			single.markInJunctor()
		}
	}
}

// markElement marks the schema as that of the elements of a list.
func (s *Schema) markElement(preserve bool) {
	s.element = true
	if !preserve || s.preserve {
		return
	}
	s.preserve = true
	if s.items != nil {
		s.items.markElement(true)
	}
}

// hasLimits reports whether a node restricts values beyond their type.
func hasLimits(n *form.Node) bool {
	return n.Enum != nil || n.Pattern != "" || n.Format != "" || n.MultipleOf != nil || n.Unique || n.Embedded ||
		n.Required != nil || n.ListType != "" || n.Closed ||
		n.Minimum != nil || n.Maximum != nil || n.MinLength != nil || n.MaxLength != nil ||
		n.MinItems != nil || n.MaxItems != nil || n.MinMembers != nil || n.MaxMembers != nil ||
		n.AllOf != nil || n.AnyOf != nil || n.OneOf != nil || n.Not != nil
}

func (s *Schema) holdsDefault() bool {
	if s.node.Default != nil || s.additional != nil && s.additional.defaulted || s.items != nil && s.items.defaulted {
		return true
	}
	for _, member := range s.properties {
		if member.defaulted {
			return true
		}
	}
	return false
}

// decoded decodes JSON like the API server: integers stay integers.
func decoded(text []byte) (value any, err error) {
	err = utiljson.Unmarshal(text, &value)
	return value, err
}
