// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"sync/atomic"

	"k8s.io/kube-openapi/pkg/validation/validate"
)

// Schema is the stripped schema of a value. It is safe for concurrent use, and may be part of several
// schemas.
type Schema struct {
	properties map[string]*Schema
	additional *Schema
	items      *Schema
	limits     *limits

	kind     kind
	nullable bool
	// closed is additionalProperties: false.
	closed bool
	// preserve is true if unknown members are not pruned. It extends to the elements of a list,
	// whatever their own schema says.
	preserve bool
	// element is true for the schema of the elements of a list, where null is not pruned.
	element bool
	// inJunctor is true inside of allOf, anyOf, oneOf and not, where the type has not been checked
	// before.
	inJunctor bool

	// limited is true if more than the type restricts the value itself.
	limited bool
	// isText is true if the limits are those of a string, which need no decoding.
	isText bool
	// defaulted is true if the schema has a default for any part of the value.
	defaulted bool

	// What follows is derived, when it is first needed.
	validator derived[validate.SchemaValidator]
	fragment  derived[Schema]
}

// derived is a value that is computed when it is first needed. A converter pod has the schemas of
// many kinds, and needs these values of few of them, so it takes one word.
type derived[T any] struct{ value atomic.Pointer[T] }

// of returns what derive returns for the schema. Calls at the same time may compute it twice, and
// get the same one.
func (d *derived[T]) of(s *Schema, derive func(*Schema) *T) *T {
	if value := d.value.Load(); value != nil {
		return value
	}
	d.value.CompareAndSwap(nil, derive(s))
	return d.value.Load()
}

// pattern is a compiled pattern, or why it cannot be compiled.
type pattern struct {
	*regexp.Regexp
	err error
}

// kind is a type that the first byte of a value reveals.
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

// anything is the schema of values without a known schema.
var anything = &Schema{preserve: true, nullable: true, limits: noLimits}

// undeclared is the schema of values without declared members: members are pruned, and other
// values are not.
var undeclared = &Schema{nullable: true, limits: noLimits}

// Field returns the schema of a member, nil if the API server would prune the member.
func (s *Schema) Field(name string) *Schema { return s.member([]byte(name)) }

// Items returns the schema of the elements of a list, nil if the value is not a list.
func (s *Schema) Items() *Schema {
	switch {
	case s.kind != arrayKind && s.kind != anyKind:
		return nil
	case s.items != nil:
		return s.items
	case s.preserve:
		return anything
	}
	return undeclared
}

// Keys returns the names of the keys of a list map, in the schema's order; nil for any other
// value.
func (s *Schema) Keys() []string {
	if s.limits.ListType != "map" {
		return nil
	}
	return s.limits.ListKeys
}

// IsObject reports whether only objects fit, with declared fields or as a map.
func (s *Schema) IsObject() bool { return s.kind == objectKind }

// IsMap reports whether only maps fit: objects whose members all have the same schema.
func (s *Schema) IsMap() bool { return s.kind == objectKind && s.additional != nil }

// IsList reports whether only lists fit.
func (s *Schema) IsList() bool { return s.kind == arrayKind }

// IsSet reports whether the elements of a list must differ.
func (s *Schema) IsSet() bool { return s.limits.ListType == "set" }

// IsNullable reports whether null fits.
func (s *Schema) IsNullable() bool { return s.nullable }

// Part returns the schema of a fragment of the value, such as server-side apply sends: nothing is
// required, and all other limits stay.
func (s *Schema) Part() *Schema {
	if s == nil {
		return nil
	}
	return s.fragment.of(s, (*Schema).newFragment)
}

func (s *Schema) newFragment() *Schema {
	fragment := s.withLimits(s.limits.ofFragment())
	fragment.additional, fragment.items, fragment.properties = s.additional.Part(), s.items.Part(), maps.Clone(s.properties)
	for name, member := range s.properties {
		fragment.properties[name] = member.Part()
	}
	if fragment.limits == s.limits && fragment.additional == s.additional && fragment.items == s.items && maps.Equal(fragment.properties, s.properties) {
		return s
	}
	fragment.derive(false)
	return fragment
}

// withLimits returns a schema with other limits.
func (s *Schema) withLimits(limits *limits) *Schema {
	return &Schema{
		properties: s.properties, additional: s.additional, items: s.items, limits: limits,
		kind: s.kind, nullable: s.nullable, closed: s.closed, preserve: s.preserve, element: s.element, inJunctor: s.inJunctor,
		limited: s.limited, isText: s.isText, defaulted: s.defaulted,
	}
}

// Sample returns a value that fits: the text, a JSON string, if it does, or else a value that the
// schema names or that its type suggests; nil if none of these fits.
func (s *Schema) Sample(text json.RawMessage) json.RawMessage {
	candidates := append([]json.RawMessage{text, s.limits.Default}, s.limits.Enum...)
	for _, limit := range []*float64{s.limits.Minimum, s.limits.Maximum} {
		if limit != nil {
			candidates = append(candidates, strconv.AppendFloat(nil, *limit, 'f', -1, 64))
		}
	}
	for _, usual := range []string{"1", "true", "{}", "[]", `"a"`, `"1"`, `"1s"`, `"2006-01-02T15:04:05Z"`, `"192.0.2.1"`} {
		candidates = append(candidates, json.RawMessage(usual))
	}
	pos := slices.IndexFunc(candidates, func(value json.RawMessage) bool { return value != nil && s.Fits(value) == nil })
	if pos < 0 {
		return nil
	}
	return candidates[pos]
}

// Text is the schema of a string.
var Text = &Schema{kind: stringKind, limits: noLimits, isText: true}

// Anything is the schema of a value without a known schema.
func Anything() *Schema { return anything }

// Default returns the default of the value, nil if it has none.
func (s *Schema) Default() json.RawMessage { return s.limits.Default }
