// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package strip reduces a version's schema to what package shape needs of it, for the
// ruleset. It links the types and formats of the API server; package shape, which a
// converter links, does not.
package strip

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/document"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
)

// props is the schema of a value.
type props = apiextensionsv1.JSONSchemaProps

// Of strips a structural schema of everything that does not decide whether a value fits,
// such as descriptions, examples and CEL rules. It does not look for what a structural schema
// must not have, such as $ref. It keeps defaults, because the API server
// fills them in before it validates, so that they satisfy required fields and the keys of
// list maps. A nil schema allows every value. Equal schemas give equal bytes.
func Of(schema *apiextensionsv1.JSONSchemaProps) (json.RawMessage, error) {
	if schema == nil {
		return encode(shape.Anything())
	}
	node, err := strip(schema)
	if err != nil {
		return nil, fmt.Errorf("stripping the schema: %w", err)
	}
	return encode(node)
}

func encode(s *shape.Schema) (json.RawMessage, error) {
	text, ok := document.Encode(s)
	if !ok {
		return nil, errors.New("the schema has a value that is not JSON")
	}
	return text, nil
}

func strip(s *props) (*shape.Schema, error) {
	node, err := stripValue(s)
	if err != nil {
		return nil, err
	}
	return node, errors.Join(addMembers(s, node), addElements(s, node), addJunctors(s, node))
}

var kinds = map[string]shape.Kind{
	"": shape.AnyKind, "string": shape.StringKind, "integer": shape.IntegerKind, "number": shape.NumberKind,
	"boolean": shape.BooleanKind, "object": shape.ObjectKind, "array": shape.ArrayKind,
}

// stripValue strips a schema without those of members, elements and junctors.
func stripValue(s *props) (*shape.Schema, error) {
	format, err := formatOf(s)
	if err != nil {
		return nil, err
	}
	node := &shape.Schema{Node: shape.Node{
		Nullable: s.Nullable, Preserve: s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields,
		Embedded: s.XEmbeddedResource,
		Limits: &shape.Limits{
			Required: sorted(s.Required), Pattern: s.Pattern, Format: format,
			Minimum: s.Minimum, Maximum: s.Maximum, MultipleOf: s.MultipleOf,
			ExclusiveMin: s.ExclusiveMinimum, ExclusiveMax: s.ExclusiveMaximum,
			MinLength: positive(s.MinLength), MaxLength: s.MaxLength, MinItems: positive(s.MinItems), MaxItems: s.MaxItems,
			MinMembers: positive(s.MinProperties), MaxMembers: s.MaxProperties,
		},
	}}
	kind, known := kinds[s.Type]
	if !known {
		return nil, fmt.Errorf("type %q is not supported in a structural schema", s.Type)
	}
	if node.Kind = kind; s.XIntOrString {
		node.Kind = shape.IntOrStringKind
	}
	for _, value := range s.Enum {
		node.Enum = append(node.Enum, value.Raw)
	}
	if s.Default != nil {
		node.Fallback = s.Default.Raw
	}
	if s.XListType != nil && *s.XListType != "atomic" {
		node.ListType, node.ListKeys = *s.XListType, s.XListMapKeys
	}
	return node, nil
}

// formatOf returns the format of a value, "" if the API server ignores it.
func formatOf(s *props) (string, error) {
	known := &spec.Schema{SchemaProps: spec.SchemaProps{Format: s.Format}}
	switch {
	case s.XIntOrString:
		known.Type = spec.StringOrArray{"integer", "string"}
	case s.Type != "":
		known.Type = spec.StringOrArray{s.Type}
	}
	strip := validation.StripUnsupportedFormatsPostProcessorForVersion(environment.DefaultCompatibilityVersion())
	if err := strip(known); err != nil {
		return "", err
	}
	return known.Format, nil
}

// positive drops a limit that every value meets.
func positive(limit *int64) *int64 {
	if limit == nil || *limit <= 0 {
		return nil
	}
	return limit
}

func sorted(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

func addMembers(s *props, node *shape.Schema) (err error) {
	for name, member := range s.Properties {
		if node.Properties == nil {
			node.Properties = make(map[string]*shape.Schema, len(s.Properties))
		}
		if node.Properties[name], err = strip(&member); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	switch additional := s.AdditionalProperties; {
	case additional == nil:
	case additional.Schema != nil:
		node.Additional, err = strip(additional.Schema)
	default:
		node.Open, node.Closed = additional.Allows, !additional.Allows
	}
	return err
}

func addElements(s *props, node *shape.Schema) (err error) {
	if s.Items != nil && s.Items.Schema != nil {
		node.Elements, err = strip(s.Items.Schema)
	}
	return err
}

func addJunctors(s *props, node *shape.Schema) (err error) {
	if node.AllOf, err = stripAll(s.AllOf); err != nil {
		return err
	}
	if node.AnyOf, err = stripAll(s.AnyOf); err != nil {
		return err
	}
	if node.OneOf, err = stripAll(s.OneOf); err != nil {
		return err
	}
	if s.Not != nil {
		node.Not, err = strip(s.Not)
	}
	return err
}

func stripAll(schemas []props) ([]*shape.Schema, error) {
	var nodes []*shape.Schema
	for i := range schemas {
		node, err := strip(&schemas[i])
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, node)
	}
	return nodes, nil
}
