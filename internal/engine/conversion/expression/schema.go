// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"maps"

	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
)

// TypesOf returns a stripped schema in the form of the API server's CEL library: the types of values, and not which values
// are valid. The compiler has the whole schema in the same form.
func TypesOf(s *shape.Schema) common.Schema {
	t := &typed{Schema: noValidations, of: s}
	if s.Elements != nil {
		t.items = TypesOf(s.Elements)
	}
	if s.Additional != nil {
		t.additional = TypesOf(s.Additional)
	}
	for name, member := range s.Properties { // keep nil for none: for the CEL library, an empty map differs from nil
		if s.Embedded && isEnvelope(name) {
			if len(member.AllOf) == 0 {
				continue
			}
			member = member.AllOf[0] // as declared
		}
		if t.properties == nil {
			t.properties = make(map[string]common.Schema, len(s.Properties))
		}
		t.properties[name] = TypesOf(member)
	}
	return t
}

// Anything is the schema of values without a schema.
var Anything = TypesOf(shape.Anything())

// typed implements common.Schema.
type typed struct {
	common.Schema     // without validations: values are validated when they are written, and not when they are converted
	of                *shape.Schema
	items, additional common.Schema
	properties        map[string]common.Schema
}

var noValidations = &openapi.Schema{Schema: &spec.Schema{}}

// shapeOf returns the schema of which TypesOf has made a schema, and that of anything for another one.
func shapeOf(s common.Schema) *shape.Schema {
	if t, is := s.(*typed); is {
		return t.of
	}
	return shape.Anything()
}

func isEnvelope(name string) bool {
	return name == "apiVersion" || name == "kind" || name == "metadata"
}

// Member returns the schema of a member, nil if the API server would prune the member.
func Member(s common.Schema, name string) common.Schema {
	if member, named := s.Properties()[name]; named {
		return member
	}
	additional := s.AdditionalProperties()
	if additional != nil && additional.Schema() != nil {
		return additional.Schema()
	}
	if s.IsXPreserveUnknownFields() || additional != nil && additional.Allows() || s.IsXEmbeddedResource() && isEnvelope(name) {
		return Anything
	}
	return nil
}

// Untyped reports whether any JSON value is allowed.
func Untyped(s common.Schema) bool {
	return s.Type() == "" && s.IsXPreserveUnknownFields() && !s.IsXIntOrString()
}

// Format returns the format of a string. Formats of other types have no effect.
func Format(s common.Schema) string {
	if s.Type() != "string" {
		return ""
	}
	return s.Format()
}

var typeNames = map[shape.Kind]string{
	shape.StringKind: "string", shape.IntegerKind: "integer", shape.NumberKind: "number",
	shape.BooleanKind: "boolean", shape.ObjectKind: "object", shape.ArrayKind: "array",
}

func (t *typed) Type() string                         { return typeNames[t.of.Kind] }
func (t *typed) Format() string                       { return t.of.Format }
func (t *typed) Items() common.Schema                 { return t.items }
func (t *typed) Properties() map[string]common.Schema { return t.properties }
func (t *typed) Nullable() bool                       { return t.of.Nullable }
func (t *typed) IsXIntOrString() bool                 { return t.of.Kind == shape.IntOrStringKind }
func (t *typed) IsXEmbeddedResource() bool            { return t.of.Embedded }
func (t *typed) IsXPreserveUnknownFields() bool       { return t.of.Preserve }
func (t *typed) XListType() string                    { return t.of.ListType }
func (t *typed) XListMapKeys() []string               { return t.of.ListKeys }
func (t *typed) AdditionalProperties() common.SchemaOrBool {
	if t.additional == nil && !t.of.Open && !t.of.Closed {
		return nil
	}
	return additional{t.additional, !t.of.Closed}
}

// additional implements common.SchemaOrBool.
type additional struct {
	schema common.Schema
	allows bool
}

func (a additional) Schema() common.Schema { return a.schema }
func (a additional) Allows() bool          { return a.allows }

// WithTypeAndObjectMeta returns the schema with the members that every Kubernetes object has, as
// apiextensions does. Of metadata, it only declares name and generateName.
func (t *typed) WithTypeAndObjectMeta() common.Schema {
	is := func(s common.Schema, name, kind string) bool {
		member, named := s.Properties()[name]
		return named && member.Type() == kind
	}
	if is(t, "kind", "string") && is(t, "apiVersion", "string") && is(t, "metadata", "object") &&
		is(t.properties["metadata"], "name", "string") && is(t.properties["metadata"], "generateName", "string") {
		return t
	}
	object, text := *t, TypesOf(shape.Text)
	object.properties = map[string]common.Schema{}
	maps.Copy(object.properties, t.properties)
	object.properties["kind"], object.properties["apiVersion"] = text, text
	object.properties["metadata"] = &typed{
		Schema: noValidations, of: &shape.Schema{Node: shape.Node{Kind: shape.ObjectKind, Limits: &shape.Limits{}}},
		properties: map[string]common.Schema{"name": text, "generateName": text},
	}
	return &object
}
