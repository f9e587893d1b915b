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

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape/internal/form"
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
		return form.Encode(&form.Node{Preserve: true, Nullable: true})
	}
	node, err := strip(schema)
	if err != nil {
		return nil, fmt.Errorf("stripping the schema: %w", err)
	}
	return form.Encode(node)
}

func strip(s *props) (*form.Node, error) {
	node, err := stripValue(s)
	if err != nil {
		return nil, err
	}
	return node, errors.Join(addMembers(s, node), addElements(s, node), addJunctors(s, node))
}

// stripValue strips a schema without those of members, elements and junctors.
func stripValue(s *props) (*form.Node, error) {
	format, err := formatOf(s)
	if err != nil {
		return nil, err
	}
	node := &form.Node{
		Nullable: s.Nullable, Preserve: s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields,
		Embedded: s.XEmbeddedResource, IntOrString: s.XIntOrString,
		Limits: &form.Limits{
			Required: sorted(s.Required), Pattern: s.Pattern, Format: format,
			Minimum: s.Minimum, Maximum: s.Maximum, MultipleOf: s.MultipleOf,
			ExclusiveMin: s.ExclusiveMinimum, ExclusiveMax: s.ExclusiveMaximum,
			MinLength: positive(s.MinLength), MaxLength: s.MaxLength, MinItems: positive(s.MinItems), MaxItems: s.MaxItems,
			MinMembers: positive(s.MinProperties), MaxMembers: s.MaxProperties, Unique: s.UniqueItems,
		},
	}
	if s.Type != "" {
		node.Type = s.Type[:1]
		if form.Types[node.Type] != s.Type {
			return nil, fmt.Errorf("type %q is not supported in a structural schema", s.Type)
		}
	}
	for _, value := range s.Enum {
		node.Enum = append(node.Enum, value.Raw)
	}
	if s.Default != nil {
		node.Default = s.Default.Raw
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

func addMembers(s *props, node *form.Node) (err error) {
	for name, member := range s.Properties {
		if node.Properties == nil {
			node.Properties = make(map[string]*form.Node, len(s.Properties))
		}
		if node.Properties[name], err = strip(&member); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	switch additional := s.AdditionalProperties; {
	case additional == nil:
	case additional.Schema != nil:
		node.Additional, err = strip(additional.Schema)
	case additional.Allows:
		// There, the API server accepts null, and prunes the members of objects.
		node.Additional = &form.Node{Nullable: true}
	default:
		node.Closed = true
	}
	return err
}

func addElements(s *props, node *form.Node) (err error) {
	if s.Items != nil && s.Items.Schema != nil {
		node.Items, err = strip(s.Items.Schema)
	}
	return err
}

func addJunctors(s *props, node *form.Node) (err error) {
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

func stripAll(schemas []props) ([]*form.Node, error) {
	var nodes []*form.Node
	for i := range schemas {
		node, err := strip(&schemas[i])
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, node)
	}
	return nodes, nil
}
