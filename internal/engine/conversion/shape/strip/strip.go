// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package strip reduces a version's schema to what package shape needs of it, for the
// ruleset. It links the types and formats of the API server; package shape, which a
// converter links, does not.
package strip

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/kube-openapi/pkg/validation/spec"

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
		return json.Marshal(shape.Anything())
	}
	var r stripper
	node := r.strip(schema, "")
	if r.err != nil {
		return nil, fmt.Errorf("stripping the schema: %w", r.err)
	}
	return json.Marshal(node)
}

// stripper strips schemas, and notes the first error.
type stripper struct{ err error }

func (r *stripper) strip(s *props, path string) *shape.Schema {
	node := r.stripValue(s, path)
	for name, member := range s.Properties {
		if node.Properties == nil {
			node.Properties = make(map[string]*shape.Schema, len(s.Properties))
		}
		node.Properties[name] = r.strip(&member, path+"."+name)
	}
	switch additional := s.AdditionalProperties; {
	case additional == nil:
	case additional.Schema != nil:
		node.Additional = r.strip(additional.Schema, path+"[*]")
	default:
		node.Open, node.Closed = additional.Allows, !additional.Allows
	}
	if s.Items != nil && s.Items.Schema != nil {
		node.Elements = r.strip(s.Items.Schema, path+"[*]")
	}
	node.AllOf, node.AnyOf, node.OneOf = r.stripAll(s.AllOf, path), r.stripAll(s.AnyOf, path), r.stripAll(s.OneOf, path)
	if s.Not != nil {
		node.Not = r.strip(s.Not, path)
	}
	return node
}

func (r *stripper) stripAll(schemas []props, path string) (nodes []*shape.Schema) {
	for i := range schemas {
		nodes = append(nodes, r.strip(&schemas[i], path))
	}
	return nodes
}

var kinds = map[string]shape.Kind{
	"": shape.AnyKind, "string": shape.StringKind, "integer": shape.IntegerKind, "number": shape.NumberKind,
	"boolean": shape.BooleanKind, "object": shape.ObjectKind, "array": shape.ArrayKind,
}

// stripValue strips a schema without those of members, elements and junctors.
func (r *stripper) stripValue(s *props, path string) *shape.Schema {
	node := &shape.Schema{Node: shape.Node{
		Nullable: s.Nullable, Preserve: s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields,
		Embedded: s.XEmbeddedResource,
		Limits: &shape.Limits{
			Required: sorted(s.Required), Pattern: s.Pattern, Format: r.formatOf(s),
			Minimum: s.Minimum, Maximum: s.Maximum, MultipleOf: s.MultipleOf,
			ExclusiveMin: s.ExclusiveMinimum, ExclusiveMax: s.ExclusiveMaximum,
			MinLength: positive(s.MinLength), MaxLength: s.MaxLength, MinItems: positive(s.MinItems), MaxItems: s.MaxItems,
			MinMembers: positive(s.MinProperties), MaxMembers: s.MaxProperties,
		},
	}}
	kind, known := kinds[s.Type]
	if !known {
		r.err = cmp.Or(r.err, fmt.Errorf("%s: type %q is not supported in a structural schema", path, s.Type))
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
	return node
}

// formatOf returns the format of a value, "" if the API server ignores it.
func (r *stripper) formatOf(s *props) string {
	known := &spec.Schema{SchemaProps: spec.SchemaProps{Format: s.Format}}
	switch {
	case s.XIntOrString:
		known.Type = spec.StringOrArray{"integer", "string"}
	case s.Type != "":
		known.Type = spec.StringOrArray{s.Type}
	}
	strip := validation.StripUnsupportedFormatsPostProcessorForVersion(environment.DefaultCompatibilityVersion())
	r.err = cmp.Or(r.err, strip(known))
	return known.Format
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
