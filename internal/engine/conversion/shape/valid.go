// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"maps"
	"regexp"
	"slices"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// decodedFits checks the limits that need decoding.
func (s *Schema) decodedFits(text []byte) *MisfitError {
	value, err := decoded(text)
	if err != nil {
		return misfit(notJSON)
	}
	s.fillDefaults(value)
	return s.validate(value)
}

// types are the types that the validator accepts for a kind.
var types = map[kind]spec.StringOrArray{
	stringKind: {"string"}, integerKind: {"integer"}, numberKind: {"number"}, booleanKind: {"boolean"},
	objectKind: {"object"}, arrayKind: {"array"}, intOrStringKind: {"integer", "string"},
}

// validate checks a decoded value and its content, and stops at the first misfit. The API server's
// validator continues, and compares each error with all previous ones: that is slow for a thousand
// invalid elements.
func (s *Schema) validate(value any) *MisfitError {
	if s.limited || s.inJunctor || s.kind == integerKind || s.kind == intOrStringKind {
		if result := s.validator.of(s, (*Schema).newValidator).Validate(value); !result.IsValid() {
			return misfitOf(result.Errors[0])
		}
	}
	if value == nil {
		return nil
	}
	if m := firstMisfit(s.matchPattern(value), s.validateJunctors(value)); m != nil {
		return m
	}
	if s.limits.extraCheck != nil {
		if reason := s.limits.extraCheck(value); reason != "" {
			return misfit(reason)
		}
	}
	switch value := value.(type) {
	case map[string]any:
		return s.validateMembers(value)
	case []any:
		return s.validateElements(value)
	}
	return nil
}

// newValidator returns the API server's validator for the value without its content. Patterns are
// checked separately, because the validator would cache them for ever.
func (s *Schema) newValidator() *validate.SchemaValidator {
	n := s.limits
	alone := &spec.Schema{SchemaProps: spec.SchemaProps{
		Type: types[s.kind], Nullable: s.nullable, Format: n.Format, Required: n.Required,
		Minimum: n.Minimum, ExclusiveMinimum: n.ExclusiveMin, Maximum: n.Maximum, ExclusiveMaximum: n.ExclusiveMax,
		MultipleOf: n.MultipleOf, MinLength: n.MinLength, MaxLength: n.MaxLength, MinItems: n.MinItems, MaxItems: n.MaxItems,
		MinProperties: n.MinMembers, MaxProperties: n.MaxMembers, UniqueItems: n.Unique,
	}}
	for _, text := range n.Enum {
		value, err := decoded(text)
		if err != nil {
			continue // cannot happen: it was read from JSON
		}
		alone.Enum = append(alone.Enum, value)
	}
	return validate.NewSchemaValidator(alone, nil, "", strfmt.Default)
}

func (s *Schema) newPattern() *pattern {
	compiled, err := regexp.Compile(s.limits.Pattern)
	return &pattern{compiled, err}
}

// matchPattern checks the pattern of a string.
func (s *Schema) matchPattern(value any) *MisfitError {
	text, isText := value.(string)
	if !isText || s.limits.Pattern == "" {
		return nil
	}
	if pattern := s.limits.pattern.of(s, (*Schema).newPattern); pattern.err != nil || !pattern.MatchString(text) {
		return misfit("does not match the pattern")
	}
	return nil
}

// validateJunctors checks allOf, anyOf, oneOf and not.
func (s *Schema) validateJunctors(value any) *MisfitError {
	for _, each := range s.limits.allOf {
		if m := each.validate(value); m != nil {
			return m
		}
	}
	fits := func(other *Schema) bool { return other.validate(value) == nil }
	if len(s.limits.anyOf) > 0 && !slices.ContainsFunc(s.limits.anyOf, fits) {
		return misfit("fits none of anyOf")
	}
	if len(s.limits.oneOf) > 0 {
		fitting := 0
		for _, each := range s.limits.oneOf {
			if fits(each) {
				fitting++
			}
		}
		if fitting != 1 {
			return misfit("does not fit exactly one of oneOf")
		}
	}
	if s.limits.not != nil && fits(s.limits.not) {
		return misfit("fits what it must not")
	}
	return nil
}

// validateMembers checks the members in the order of their names, so that errors are
// deterministic.
func (s *Schema) validateMembers(object map[string]any) *MisfitError {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		member, found := s.properties[name]
		if !found {
			member = s.additional
		}
		if member == nil && s.closed {
			return misfit("is not in the schema").inMember([]byte(name))
		}
		if member == nil {
			continue
		}
		if m := member.validate(object[name]); m != nil {
			return m.inMember([]byte(name))
		}
	}
	return nil
}

func (s *Schema) validateElements(list []any) *MisfitError {
	if m := s.checkUnique(list); m != nil || s.items == nil {
		return m
	}
	for i, element := range list {
		if m := s.items.validate(element); m != nil {
			return m.inElement(i)
		}
	}
	return nil
}

// newDefault returns the default, with all defaults in it filled in. Values share it, and must not
// change it.
func (s *Schema) newDefault() *any {
	value, err := decoded(s.limits.Default)
	if err != nil {
		return new(any) // cannot happen: it was read from JSON
	}
	s.fillDefaults(value)
	return &value
}

// fillDefaults fills in defaults, as the API server does before it validates. The scan has already
// refused nulls that a default would replace.
func (s *Schema) fillDefaults(value any) {
	if !s.defaulted {
		return
	}
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			if property, found := s.properties[name]; found {
				property.fillDefaults(member)
			} else if s.additional != nil {
				s.additional.fillDefaults(member)
			}
		}
		for name, property := range s.properties {
			if _, found := value[name]; !found && property.limits.Default != nil {
				value[name] = *property.limits.defaultValue.of(property, (*Schema).newDefault)
			}
		}
	case []any:
		if s.items != nil {
			for _, element := range value {
				s.items.fillDefaults(element)
			}
		}
	}
}
