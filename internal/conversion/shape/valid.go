// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"maps"
	"slices"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"

	"github.com/conversion-operator/conversion-operator/internal/conversion/shape/internal/form"
)

// decodedFits checks the limits of all that is in a value.
func (s *Schema) decodedFits(text []byte) *MisfitError {
	value, err := decoded(text)
	if err != nil {
		return misfit(notJSON)
	}
	s.fill(value)
	return s.valid(value)
}

// valid checks a decoded value, what is in it, and stops at the first misfit. The
// API server's validator goes on, and compares each error with all before: with a
// thousand wrong elements that is slow.
func (s *Schema) valid(value any) *MisfitError {
	if s.limited || s.joining || s.kind == integerKind || s.kind == intOrStringKind {
		if result := s.validator().Validate(value); !result.IsValid() {
			return refused(result.Errors[0])
		}
	}
	if value == nil {
		return nil
	}
	if m := first(s.matches(value), s.joined(value)); m != nil {
		return m
	}
	if s.extra != nil {
		if reason := s.extra(value); reason != "" {
			return misfit(reason)
		}
	}
	switch value := value.(type) {
	case map[string]any:
		return s.validMembers(value)
	case []any:
		return s.validElements(value)
	}
	return nil
}

// newValidator makes the API server's validator of the value alone. Patterns are
// not its part: it would keep them for good.
func (s *Schema) newValidator() *validate.SchemaValidator {
	n := s.node
	alone := &spec.Schema{SchemaProps: spec.SchemaProps{
		Nullable: n.Nullable, Format: n.Format, Required: n.Required,
		Minimum: n.Minimum, ExclusiveMinimum: n.ExclusiveMin, Maximum: n.Maximum, ExclusiveMaximum: n.ExclusiveMax,
		MultipleOf: n.MultipleOf, MinLength: n.MinLength, MaxLength: n.MaxLength, MinItems: n.MinItems, MaxItems: n.MaxItems,
		MinProperties: n.MinMembers, MaxProperties: n.MaxMembers, UniqueItems: n.Unique,
	}}
	switch {
	case n.IntOrString:
		alone.Type = spec.StringOrArray{"integer", "string"}
	case n.Type != "":
		alone.Type = spec.StringOrArray{form.Types[n.Type]}
	}
	for _, text := range n.Enum {
		value, err := decoded(text)
		if err != nil {
			continue // it was read from JSON, so this does not happen
		}
		alone.Enum = append(alone.Enum, value)
	}
	return validate.NewSchemaValidator(alone, nil, "", strfmt.Default)
}

// matches holds a text against the pattern.
func (s *Schema) matches(value any) *MisfitError {
	text, isText := value.(string)
	if !isText || s.node.Pattern == "" {
		return nil
	}
	if pattern, err := s.pattern(); err != nil || !pattern.MatchString(text) {
		return misfit("does not match the pattern")
	}
	return nil
}

// joined checks allOf, anyOf, oneOf and not.
func (s *Schema) joined(value any) *MisfitError {
	for _, each := range s.allOf {
		if m := each.valid(value); m != nil {
			return m
		}
	}
	fits := func(other *Schema) bool { return other.valid(value) == nil }
	if len(s.anyOf) > 0 && !slices.ContainsFunc(s.anyOf, fits) {
		return misfit("fits none of anyOf")
	}
	if len(s.oneOf) > 0 {
		fitting := 0
		for _, each := range s.oneOf {
			if fits(each) {
				fitting++
			}
		}
		if fitting != 1 {
			return misfit("does not fit exactly one of oneOf")
		}
	}
	if s.not != nil && fits(s.not) {
		return misfit("fits what it must not")
	}
	return nil
}

// validMembers goes through the members by name, so that errors stay the same.
func (s *Schema) validMembers(object map[string]any) *MisfitError {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		member, found := s.properties[name]
		if !found {
			member = s.additional
		}
		if member == nil && s.node.Closed {
			return misfit("is not in the schema").inMember([]byte(name))
		}
		if member == nil {
			continue
		}
		if m := member.valid(object[name]); m != nil {
			return m.inMember([]byte(name))
		}
	}
	return nil
}

func (s *Schema) validElements(list []any) *MisfitError {
	if m := s.unique(list); m != nil || s.items == nil {
		return m
	}
	for i, element := range list {
		if m := s.items.valid(element); m != nil {
			return m.inElement(i)
		}
	}
	return nil
}

// newDefault is the schema's default with all defaults in it. Values share it, so
// it does not grow with them, and must not change it.
func (s *Schema) newDefault() any {
	value, err := decoded(s.node.Default)
	if err != nil {
		return nil // it was read from JSON, so this does not happen
	}
	s.fill(value)
	return value
}

// fill puts defaults where a value has nothing, as the API server does before it
// validates. Nulls that a default replaces did not get this far.
func (s *Schema) fill(value any) {
	if !s.defaulted {
		return
	}
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			if property, found := s.properties[name]; found {
				property.fill(member)
			} else if s.additional != nil {
				s.additional.fill(member)
			}
		}
		for name, property := range s.properties {
			if _, found := value[name]; !found && property.node.Default != nil {
				value[name] = property.initial()
			}
		}
	case []any:
		if s.items != nil {
			for _, element := range value {
				s.items.fill(element)
			}
		}
	}
}
