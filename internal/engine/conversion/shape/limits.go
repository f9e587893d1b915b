// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"encoding/json"
	"regexp"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// Limits restrict a value beyond its type, or give it a default.
type Limits struct {
	// ListType is "set" or "map"; an atomic list needs no check.
	ListType string   `json:"lt,omitempty"`
	ListKeys []string `json:"lk,omitempty"`

	Required     []string          `json:"r,omitempty"`
	Enum         []json.RawMessage `json:"e,omitempty"`
	Fallback     json.RawMessage   `json:"d,omitempty"`
	Pattern      string            `json:"re,omitempty"`
	Format       string            `json:"f,omitempty"`
	Minimum      *float64          `json:"mn,omitempty"`
	Maximum      *float64          `json:"mx,omitempty"`
	ExclusiveMin bool              `json:"xn,omitempty"`
	ExclusiveMax bool              `json:"xx,omitempty"`
	MultipleOf   *float64          `json:"mo,omitempty"`
	MinLength    *int64            `json:"ln,omitempty"`
	MaxLength    *int64            `json:"lx,omitempty"`
	MinItems     *int64            `json:"in,omitempty"`
	MaxItems     *int64            `json:"ix,omitempty"`
	MinMembers   *int64            `json:"pn,omitempty"`
	MaxMembers   *int64            `json:"px,omitempty"`

	AllOf []*Schema `json:"all,omitempty"`
	AnyOf []*Schema `json:"any,omitempty"`
	OneOf []*Schema `json:"one,omitempty"`
	Not   *Schema   `json:"not,omitempty"`

	// envelope is the name of a field that every Kubernetes object has, for the API server's checks of it.
	envelope string
}

// noLimits are those of schemas without limits.
var noLimits = new(Limits)

// checks are what checks a scalar.
type checks struct {
	validator *validate.SchemaValidator
	// pattern is nil if it cannot be compiled.
	pattern *regexp.Regexp
}

// types are the types that the validator accepts for a kind.
var types = map[Kind]spec.StringOrArray{
	StringKind: {"string"}, IntegerKind: {"integer"}, NumberKind: {"number"}, BooleanKind: {"boolean"},
	ObjectKind: {"object"}, ArrayKind: {"array"}, IntOrStringKind: {"integer", "string"},
}

// derivedChecks returns the checks, which it makes when they are first needed: a converter pod has the schemas of many kinds, and
// needs these of few of them. Calls at the same time may make them twice, and get the same ones.
func (s *Schema) derivedChecks() *checks {
	if made := s.checks.Load(); made != nil {
		return made
	}
	s.checks.CompareAndSwap(nil, s.newChecks())
	return s.checks.Load()
}

// newChecks returns the API server's validator for the value without its content. Patterns are
// checked separately, because the validator would cache them for ever.
func (s *Schema) newChecks() *checks {
	alone := &spec.Schema{SchemaProps: spec.SchemaProps{
		Type: types[s.Kind], Nullable: s.effect.nullable, Format: s.Format, Minimum: s.Minimum, ExclusiveMinimum: s.ExclusiveMin,
		Maximum: s.Maximum, ExclusiveMaximum: s.ExclusiveMax, MultipleOf: s.MultipleOf, MinLength: s.MinLength, MaxLength: s.MaxLength,
	}}
	for _, text := range s.Enum {
		value, err := decoded(text)
		if err != nil {
			continue // cannot happen: it was read from JSON
		}
		alone.Enum = append(alone.Enum, value)
	}
	pattern, _ := regexp.Compile(s.Pattern)
	return &checks{validate.NewSchemaValidator(alone, nil, "", strfmt.Default), pattern}
}

// checkAlone checks the limits of a value without its content. The validator looks at objects and lists only to compare
// them with an enum.
func (s *Schema) checkAlone(n *tree.Node, _ extent) *MisfitError {
	if !n.IsScalar() && s.Enum == nil {
		return nil
	}
	value, err := valueOf(n)
	if err != nil {
		return misfit("is a number that is too large")
	}
	of := s.derivedChecks()
	if result := of.validator.Validate(value); !result.IsValid() {
		return misfitOf(result.Errors[0])
	}
	if n.Is(tree.String) && s.Pattern != "" && (of.pattern == nil || !of.pattern.MatchString(n.Text())) {
		return misfit("does not match the pattern")
	}
	return nil
}

// valueOf returns a value as the API server decodes it. Most are strings.
func valueOf(n *tree.Node) (any, error) {
	if n.Is(tree.String) {
		return n.Text(), nil
	}
	return decoded(n.JSON())
}

// decoded decodes JSON like the API server: integers stay integers.
func decoded(text []byte) (value any, err error) {
	err = utiljson.Unmarshal(text, &value)
	return value, err
}
