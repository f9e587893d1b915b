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

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape/internal/form"
)

// Read reads a schema that package strip wrote. It refuses unknown fields: ignoring a limit would
// admit values that do not fit.
func Read(text json.RawMessage) (*Schema, error) { return new(Reader).Read(text) }

// Reader reads schemas, and shares their equal parts. A converter pod keeps the schemas of many kinds in
// memory; the versions of a kind differ little, and the same types recur in each. The zero value is
// ready for use. A Reader is not safe for concurrent use; the schemas are.
type Reader struct{ parts parts }

// Read is the function Read for one schema of several.
func (r *Reader) Read(text json.RawMessage) (*Schema, error) {
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
	return r.parts.schema(node, position{}), nil
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
	var nodes []*form.Node
	for _, member := range node.Properties {
		nodes = append(nodes, member)
	}
	for _, single := range []*form.Node{node.Additional, node.Items} {
		if single != nil {
			nodes = append(nodes, single)
		}
	}
	if node.Limits == nil {
		return nodes
	}
	nodes = slices.Concat(nodes, node.AllOf, node.AnyOf, node.OneOf)
	if node.Not != nil {
		nodes = append(nodes, node.Not)
	}
	return nodes
}

// position is what a schema inherits from the one around it.
type position struct{ element, preserve, inJunctor bool }

// schema returns the schema of a node.
func (p *parts) schema(node *form.Node, at position) *Schema {
	if node.Embedded {
		node = declareObjectFields(node)
	}
	s := &Schema{
		kind: kinds[node.Type], nullable: node.Nullable, closed: node.Closed,
		preserve: node.Preserve || at.preserve, element: at.element, inJunctor: at.inJunctor,
		limits: noLimits,
	}
	if node.IntOrString {
		s.kind = intOrStringKind
	}
	inside, joined := position{inJunctor: at.inJunctor}, position{inJunctor: true}
	if node.Properties != nil {
		s.properties = make(map[string]*Schema, len(node.Properties))
	}
	for name, member := range node.Properties {
		s.properties[name] = p.schema(member, inside)
	}
	if node.Additional != nil {
		s.additional = p.schema(node.Additional, inside)
	}
	if node.Items != nil {
		s.items = p.schema(node.Items, position{element: true, preserve: s.preserve, inJunctor: at.inJunctor})
	}
	if own := node.Limits; own != nil {
		s.limits = &limits{Limits: *own, allOf: p.schemas(own.AllOf, joined), anyOf: p.schemas(own.AnyOf, joined), oneOf: p.schemas(own.OneOf, joined)}
		if own.Not != nil {
			s.limits.not = p.schema(own.Not, joined)
		}
		s.limits.dropNodes()
	}
	s.derive(node.Embedded)
	if node.Embedded {
		s.checkEmbedded()
		return s
	}
	return p.share(s)
}

func (p *parts) schemas(nodes []*form.Node, at position) []*Schema {
	var all []*Schema
	for _, node := range nodes {
		all = append(all, p.schema(node, at))
	}
	return all
}

// derive sets what follows from the other fields.
func (s *Schema) derive(embedded bool) {
	s.limited = embedded || s.closed || s.limits.restrict()
	s.defaulted = s.holdsDefault()
	s.isText = s.kind == stringKind && s.limits.Format == "" && !s.limits.hasJunctors()
}

func (s *Schema) holdsDefault() bool {
	if s.limits.Default != nil || s.additional != nil && s.additional.defaulted || s.items != nil && s.items.defaulted {
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
