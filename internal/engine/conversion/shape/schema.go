// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// Schema is the stripped schema of a value. It is safe for concurrent use, and may be part of several
// schemas.
type Schema struct {
	Node

	effect effect
	// defaulted is true if the schema has a default for any part of the value.
	defaulted bool

	// checks are nil until they are needed.
	checks atomic.Pointer[checks]
}

// effect is what follows from a schema and its position.
type effect struct {
	// inJunctor is true in allOf, anyOf, oneOf and not, where what is not mentioned is not checked.
	inJunctor bool
	// nullable and preserve say what the API server does, whatever the schema itself says.
	nullable, preserve bool
}

// Node is a schema in the form in which a ruleset has it. Names are short, because a ruleset contains thousands of them.
type Node struct {
	Kind Kind `json:"t,omitempty"`
	// Properties are the declared members, and Additional the schema of all others.
	Properties map[string]*Schema `json:"p,omitempty"`
	Additional *Schema            `json:"a,omitempty"`
	// Open and Closed are additionalProperties: true, and false.
	Open   bool `json:"ao,omitempty"`
	Closed bool `json:"ac,omitempty"`
	// Elements is the schema of the elements of a list.
	Elements *Schema `json:"i,omitempty"`

	Nullable bool `json:"n,omitempty"`
	// Preserve is x-kubernetes-preserve-unknown-fields. It extends to the elements of a list, whatever their own schema
	// says.
	Preserve bool `json:"u,omitempty"`
	Embedded bool `json:"er,omitempty"`

	// Limits are nil in the form of a ruleset if there are none: most schemas have none.
	*Limits
}

// Kind is a type that the first byte of a value reveals.
type Kind byte

// The kinds. An integer or a string is x-kubernetes-int-or-string.
const (
	AnyKind Kind = iota
	StringKind
	IntegerKind
	NumberKind
	BooleanKind
	ObjectKind
	ArrayKind
	IntOrStringKind
)

// letters are the kinds in a ruleset: the first letters of the types.
const letters = " sinboax"

var kindNames = [...]string{"a value", "a string", "an integer", "a number", "a boolean", "an object", "a list", "an integer or a string"}

// MarshalText implements encoding.TextMarshaler.
func (k Kind) MarshalText() ([]byte, error) { return []byte{letters[k]}, nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *Kind) UnmarshalText(text []byte) error {
	at := strings.Index(letters, string(text))
	if len(text) != 1 || at < 0 {
		return fmt.Errorf("the type %q is unknown", text)
	}
	*k = Kind(at)
	return nil
}

// anything is the schema of values without a known schema.
var anything = &Schema{Node: Node{Preserve: true, Nullable: true, Limits: noLimits}, effect: effect{nullable: true, preserve: true}}

// undeclared is the schema of values without declared members, as in additionalProperties: true. The API server accepts
// null there, and prunes the members of objects.
var undeclared = &Schema{Node: Node{Limits: noLimits}, effect: effect{nullable: true}}

// unchecked is the schema of what a schema in allOf, anyOf, oneOf or not does not mention.
var unchecked = &Schema{Node: Node{Limits: noLimits}, effect: effect{nullable: true}}

// Text is the schema of a string.
var Text = &Schema{Node: Node{Kind: StringKind, Limits: noLimits}}

// Anything is the schema of a value without a known schema.
func Anything() *Schema { return anything }

// Field returns the schema of a member, nil if the API server would prune the member.
func (s *Schema) Field(name string) *Schema {
	if property, found := s.Properties[name]; found {
		return property
	}
	switch {
	case s.Additional != nil:
		return s.Additional
	case s.Open:
		return undeclared
	case s.effect.inJunctor && !s.Closed:
		return unchecked
	case s.effect.preserve && !s.Closed:
		return anything
	}
	return nil
}

// Items returns the schema of the elements of a list, nil if the value is not a list.
func (s *Schema) Items() *Schema {
	switch {
	case s.Kind != ArrayKind && s.Kind != AnyKind:
		return nil
	case s.Elements != nil:
		return s.Elements
	case s.effect.inJunctor:
		return unchecked
	case s.effect.preserve:
		return anything
	}
	return undeclared
}

// Keys returns the names of the keys of a list map, in the schema's order; nil for any other
// value.
func (s *Schema) Keys() []string {
	if s.ListType != "map" {
		return nil
	}
	return s.ListKeys
}

// IsMap reports whether only maps fit: objects whose members all have the same schema.
func (s *Schema) IsMap() bool { return s.Kind == ObjectKind && (s.Additional != nil || s.Open) }

// IsNullable reports whether null fits.
func (s *Schema) IsNullable() bool { return s.effect.nullable }

// Sample returns a value that fits: the given one if it does, or else a value that the schema names or that its type
// suggests, with a member or an element for each schema in it; nil if none of these fits.
func (s *Schema) Sample(a *tree.Arena, value *tree.Node) *tree.Node {
	if s.Fits(value) == nil {
		return value
	}
	candidates := slices.Concat([]json.RawMessage{s.Fallback}, s.Enum)
	for _, limit := range []*float64{s.Minimum, s.Maximum} {
		if limit != nil {
			candidates = append(candidates, strconv.AppendFloat(nil, *limit, 'f', -1, 64))
		}
	}
	for _, usual := range []string{"80", "1", "true", "{}", "[]", `"a"`, `"1"`, `"1s"`, `"2006-01-02T15:04:05Z"`, `"2006-01-02"`, `"ODA="`, `"192.0.2.1"`} {
		candidates = append(candidates, json.RawMessage(usual))
	}
	if inside := s.sampleInside(a, value); inside != nil && s.Fits(inside) == nil {
		return inside
	}
	for _, text := range slices.DeleteFunc(candidates, func(text json.RawMessage) bool { return text == nil }) {
		if value, err := a.Read(text); err == nil && s.Fits(value) == nil {
			return value
		}
	}
	return nil
}

// sampleInside returns an object with its members, or a list or a map with one element; nil for a schema of other values.
func (s *Schema) sampleInside(a *tree.Arena, value *tree.Node) *tree.Node {
	switch {
	case s.Elements != nil:
		if element := s.Elements.Sample(a, value); element != nil {
			return a.NewList([]*tree.Node{element})
		}
		return nil
	case s.Kind != ObjectKind:
		return nil
	}
	object := a.NewObject()
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		object = a.With(object, name, s.Properties[name].Sample(a, value))
	}
	if s.Additional != nil {
		object = a.With(object, "sample", s.Additional.Sample(a, value))
	}
	return object
}
