// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"

	"k8s.io/kube-openapi/pkg/validation/validate"

	"github.com/conversion-operator/conversion-operator/internal/conversion/shape/internal/form"
)

// Schema is the stripped schema of a value. It is safe for concurrent use.
type Schema struct {
	node       *form.Node
	kind       kind
	properties map[string]*Schema
	additional *Schema
	items      *Schema

	allOf, anyOf, oneOf []*Schema
	not                 *Schema

	// preserve is true where unknown members stay. The elements of a list that
	// preserves do, too, whatever their own schema says.
	preserve bool
	// element is true for the schema of a list's elements, in which null stays.
	element bool
	// joining is true inside of allOf, anyOf, oneOf and not, where nothing has been
	// held against the type before.
	joining bool
	// limited is true where more than the type decides about the value itself.
	limited bool
	// words are the strings that the enum allows, nil where it has to be decoded.
	words func() map[string]struct{}
	// defaulted is true where a default is set for anything in the value.
	defaulted bool

	validator func() *validate.SchemaValidator
	pattern   func() (*regexp.Regexp, error)
	initial   func() any
	part      func() *Schema
	// extra is what the API server checks besides, nil where nothing.
	extra func(value any) (reason string)
}

// kind is a type, of which a value's first byte tells.
type kind byte

const (
	anyKind kind = iota
	stringKind
	integerKind
	numberKind
	booleanKind
	objectKind
	arrayKind
	intOrStringKind
)

var kinds = map[string]kind{
	"": anyKind, "s": stringKind, "i": integerKind, "n": numberKind, "b": booleanKind, "o": objectKind, "a": arrayKind,
}

// anything is the schema of values of which none is known.
var anything = newSchema(&form.Node{Preserve: true, Nullable: true})

// nothing is the schema of values in which nothing is declared: what objects hold
// there is pruned, and all else stays.
var nothing = newSchema(&form.Node{Nullable: true})

// Field is the schema of a member, nil where the API server would prune it.
func (s *Schema) Field(name string) *Schema { return s.member([]byte(name)) }

// Items is the schema of a list's elements, nil where the value is no list.
func (s *Schema) Items() *Schema {
	switch {
	case s.kind != arrayKind && s.kind != anyKind:
		return nil
	case s.items != nil:
		return s.items
	case s.preserve:
		return anything
	}
	return nothing
}

// Keys are the names of the keys of a list map, in the schema's order; nil for
// every other value.
func (s *Schema) Keys() []string {
	if s.node.ListType != "map" {
		return nil
	}
	return s.node.ListKeys
}

// IsObject reports whether only objects fit: with declared fields or as a map.
func (s *Schema) IsObject() bool { return s.kind == objectKind }

// IsMap reports whether only objects fit, all of whose members are of one schema.
func (s *Schema) IsMap() bool { return s.kind == objectKind && s.additional != nil }

// IsList reports whether only lists fit.
func (s *Schema) IsList() bool { return s.kind == arrayKind }

// IsSet reports whether only lists fit, of which no two elements are the same.
func (s *Schema) IsSet() bool { return s.kind == arrayKind && s.node.ListType == "set" }

// IsNullable reports whether null fits.
func (s *Schema) IsNullable() bool { return s.node.Nullable }

// HoldsAnything reports whether members fit that the schema does not name.
func (s *Schema) HoldsAnything() bool { return s.preserve }

// Part is the schema of a fragment of the value, such as server-side apply sends:
// whatever may be missing may be missing. What is there must be as the schema says.
func (s *Schema) Part() *Schema { return s.part() }

func (s *Schema) newPart() *Schema {
	part := newSchema(partOf(s.node))
	if s.element {
		part.ofList(s.preserve)
	}
	return part
}

// partOf takes away what a value must have. AnyOf, oneOf and not may ask for it, too.
func partOf(node *form.Node) *form.Node {
	if node == nil {
		return nil
	}
	if node.Embedded {
		node = embedded(node)
	}
	part := *node
	part.Embedded, part.Required, part.MinItems, part.MinMembers = false, nil, nil, nil
	part.AnyOf, part.OneOf, part.Not = nil, nil, nil
	part.Additional, part.Items = partOf(node.Additional), partOf(node.Items)
	part.AllOf = slices.Clone(node.AllOf)
	for i, each := range node.AllOf {
		part.AllOf[i] = partOf(each)
	}
	if node.Properties != nil {
		part.Properties = make(map[string]*form.Node, len(node.Properties))
	}
	for name, member := range node.Properties {
		part.Properties[name] = partOf(member)
	}
	return &part
}

// Sample is a value that fits: the text as a JSON string if that does, else one that
// the schema names or its type suggests; nil where none of these fits.
func (s *Schema) Sample(text json.RawMessage) json.RawMessage {
	candidates := append([]json.RawMessage{text, s.node.Default}, s.node.Enum...)
	for _, limit := range []*float64{s.node.Minimum, s.node.Maximum} {
		if limit != nil {
			candidates = append(candidates, strconv.AppendFloat(nil, *limit, 'f', -1, 64))
		}
	}
	for _, usual := range []string{"1", "true", "{}", "[]", `"a"`, `"1"`, `"1s"`, `"2006-01-02T15:04:05Z"`, `"192.0.2.1"`} {
		candidates = append(candidates, json.RawMessage(usual))
	}
	at := slices.IndexFunc(candidates, func(value json.RawMessage) bool { return value != nil && s.Fits(value) == nil })
	if at < 0 {
		return nil
	}
	return candidates[at]
}
