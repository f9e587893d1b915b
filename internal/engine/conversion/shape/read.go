// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Read reads a schema that package strip wrote. It refuses unknown fields: ignoring a limit would
// admit values that do not fit.
func Read(text json.RawMessage) (*Schema, error) { return new(Reader).Read(text) }

// Reader reads schemas, and shares their equal parts. A converter pod keeps the schemas of many kinds in
// memory; the versions of a kind differ little, and the same types recur in each. The zero value is
// ready for use. A Reader is not safe for concurrent use; the schemas are.
type Reader struct {
	// byContent are the schemas that were read.
	byContent map[string]*Schema
	err       error
}

// Read is the function Read for one schema of several.
func (r *Reader) Read(text json.RawMessage) (*Schema, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var s *Schema
	if err := decoder.Decode(&s); err != nil {
		return nil, fmt.Errorf("reading a stripped schema: %w", err)
	}
	if decoder.More() {
		return nil, errors.New("reading a stripped schema: one object is expected")
	}
	r.err = nil
	if s = r.complete(s, position{}); r.err != nil {
		return nil, fmt.Errorf("reading a stripped schema: %w", r.err)
	}
	return s, nil
}

// position is what a schema inherits from the one around it.
type position struct{ element, preserve, inJunctor bool }

// complete sets what follows from the text of a schema and from its position, and returns the schema with the same
// content that was read first.
func (r *Reader) complete(s *Schema, at position) *Schema {
	if s == nil {
		r.err = errors.New("a schema is null")
		return anything
	}
	if s.Embedded {
		s.declareObjectFields()
	}
	if s.Limits == nil {
		s.Limits = noLimits
	}
	// Null is not pruned from lists. In a junctor, the type has been checked before.
	nullable := s.Nullable || s.Kind == AnyKind && (at.inJunctor || at.element && s.Fallback == nil)
	s.effect = effect{inJunctor: at.inJunctor, nullable: nullable, preserve: s.Preserve || at.preserve}
	s.defaulted = s.Fallback != nil
	complete := func(of *Schema, at position) *Schema {
		of = r.complete(of, at)
		s.defaulted = s.defaulted || of.defaulted
		return of
	}
	inside, joined := position{inJunctor: at.inJunctor}, position{inJunctor: true}
	for name, member := range s.Properties {
		s.Properties[name] = complete(member, inside)
	}
	if s.Additional != nil {
		s.Additional = complete(s.Additional, inside)
	}
	if s.Elements != nil {
		s.Elements = complete(s.Elements, position{element: true, preserve: s.effect.preserve, inJunctor: at.inJunctor})
	}
	for _, all := range [][]*Schema{s.AllOf, s.AnyOf, s.OneOf} {
		for i := range all {
			all[i] = r.complete(all[i], joined)
		}
	}
	if s.Not != nil {
		s.Not = r.complete(s.Not, joined)
	}
	return r.share(s)
}

// share returns the schema with the same content that was read first.
func (r *Reader) share(s *Schema) *Schema {
	if r.byContent == nil {
		r.byContent = map[string]*Schema{}
	}
	content := s.content()
	if same, found := r.byContent[content]; found {
		return same
	}
	r.byContent[content] = s
	return s
}

// content describes a schema completely. The schemas in it have been shared before, so that their addresses identify
// them.
func (s *Schema) content() string {
	own, limits := s.Node, *s.Limits
	own.Properties, own.Additional, own.Elements, own.Limits = nil, nil, nil, &limits
	limits.AllOf, limits.AnyOf, limits.OneOf, limits.Not = nil, nil, nil, nil
	text, err := json.Marshal(own)
	if err != nil {
		return fmt.Sprintf("%p", s) // cannot happen: it was read from JSON
	}
	text = fmt.Appendf(text, " %v %s %p %p %v %v %v %p", s.effect, s.envelope, s.Additional, s.Elements, s.AllOf, s.AnyOf, s.OneOf, s.Not)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		text = fmt.Appendf(text, " %q %p", name, s.Properties[name])
	}
	return string(text)
}
