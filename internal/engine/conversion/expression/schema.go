// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apiserver/pkg/cel/common"
)

// Schema is the part of a field's schema that is in a ruleset: it describes types, and not which
// values are valid. So a converter pod needs no library for schemas of CustomResourceDefinitions.
// The CEL library of the API server uses it through common.Schema.
//
// ReadSchema is the only way to make one. The compiler uses it too, so that converter pods accept
// what it accepts.
type Schema struct {
	kind, format          string
	nullable, intOrString bool
	embedded, preserves   bool
	listType, mapType     string
	listKeys              []string
	items                 *Schema
	properties            map[string]common.Schema
	additional            *additional
	noValidations
}

// additional is additionalProperties: a schema, or whether any members are allowed.
type additional struct {
	schema *Schema
	allows bool
}

// ReadSchema reads the relevant members of JSONSchemaProps, and ignores the others.
func ReadSchema(text json.RawMessage) (*Schema, error) {
	s := &Schema{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("the schema is not readable: %w", err)
	}
	return s, nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Schema) UnmarshalJSON(text []byte) error {
	var read struct {
		Type                  string            `json:"type"`
		Format                string            `json:"format"`
		Nullable              bool              `json:"nullable"`
		IntOrString           bool              `json:"x-kubernetes-int-or-string"`
		EmbeddedResource      bool              `json:"x-kubernetes-embedded-resource"`
		PreserveUnknownFields bool              `json:"x-kubernetes-preserve-unknown-fields"`
		ListType              string            `json:"x-kubernetes-list-type"`
		MapType               string            `json:"x-kubernetes-map-type"`
		ListMapKeys           []string          `json:"x-kubernetes-list-map-keys"`
		Items                 *Schema           `json:"items"`
		Properties            map[string]Schema `json:"properties"`
		AdditionalProperties  *additional       `json:"additionalProperties"`
	}
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	*s = Schema{
		kind: read.Type, format: read.Format, nullable: read.Nullable, intOrString: read.IntOrString,
		embedded: read.EmbeddedResource, preserves: read.PreserveUnknownFields,
		listType: read.ListType, mapType: read.MapType, listKeys: read.ListMapKeys,
		items: read.Items, additional: read.AdditionalProperties,
	}
	for name, member := range read.Properties { // keep nil for none: for the CEL library, an empty map differs from nil
		if s.properties == nil {
			s.properties = make(map[string]common.Schema, len(read.Properties))
		}
		s.properties[name] = &member
	}
	return nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *additional) UnmarshalJSON(text []byte) error {
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		return json.Unmarshal(text, &a.allows)
	}
	a.schema, a.allows = &Schema{}, true
	return json.Unmarshal(text, a.schema)
}

// Member returns the schema of a member, nil if the API server would prune the member.
func (s *Schema) Member(name string) *Schema {
	if member, named := s.properties[name]; named {
		return member.(*Schema)
	}
	if s.additional != nil && s.additional.schema != nil {
		return s.additional.schema
	}
	if s.preserves || s.additional != nil && s.additional.allows ||
		s.embedded && (name == "apiVersion" || name == "kind" || name == "metadata") {
		return Anything
	}
	return nil
}

// Anything is the schema of values without a schema.
var Anything = &Schema{preserves: true}

// Untyped reports whether any JSON value is allowed.
func (s *Schema) Untyped() bool { return s.kind == "" && s.preserves && !s.intOrString }

// IsOpaque reports whether the schema does not describe values: expressions read them as dyn.
func (s *Schema) IsOpaque() bool { return isOpaque(s) }

// Element returns the schema of the elements of a list, nil if there is none.
func (s *Schema) Element() *Schema { return s.items }

// Value returns the schema of additional members, nil if there is none.
func (s *Schema) Value() *Schema {
	if s.additional == nil {
		return nil
	}
	return s.additional.schema
}

// Type implements common.Schema, as do all methods below.
func (s *Schema) Type() string { return s.kind }

// Format returns the format of a string. Formats of other types have no effect.
func (s *Schema) Format() string {
	if s.kind != "string" {
		return ""
	}
	return s.format
}

// Items returns the schema of the elements.
func (s *Schema) Items() common.Schema { return orNil(s.items) }

// Properties returns the named members.
func (s *Schema) Properties() map[string]common.Schema { return s.properties }

// AdditionalProperties returns the schema of members that are not named.
func (s *Schema) AdditionalProperties() common.SchemaOrBool {
	if s.additional == nil {
		return nil
	}
	return s.additional
}

// Schema implements common.SchemaOrBool.
func (a *additional) Schema() common.Schema { return orNil(a.schema) }

// Allows implements common.SchemaOrBool.
func (a *additional) Allows() bool { return a.allows }

func orNil(s *Schema) common.Schema {
	if s == nil {
		return nil
	}
	return s
}

// Nullable reports whether null is allowed.
func (s *Schema) Nullable() bool { return s.nullable }

// IsXIntOrString reports whether the value is an integer or a string.
func (s *Schema) IsXIntOrString() bool { return s.intOrString }

// IsXEmbeddedResource reports whether the value is a Kubernetes object.
func (s *Schema) IsXEmbeddedResource() bool { return s.embedded }

// IsXPreserveUnknownFields reports whether unknown members are not pruned.
func (s *Schema) IsXPreserveUnknownFields() bool { return s.preserves }

// XListType determines how lists are compared.
func (s *Schema) XListType() string { return s.listType }

// XListMapKeys returns the members that identify elements.
func (s *Schema) XListMapKeys() []string { return s.listKeys }

// XMapType determines how objects are compared.
func (s *Schema) XMapType() string { return s.mapType }

// WithTypeAndObjectMeta returns the schema with the members that every Kubernetes object has, as
// apiextensions does. Of metadata, it only declares name and generateName.
func (s *Schema) WithTypeAndObjectMeta() common.Schema {
	text := &Schema{kind: "string"}
	is := func(s *Schema, name, kind string) bool {
		member, named := s.properties[name]
		return named && member.Type() == kind
	}
	if metadata := s.Member("metadata"); is(s, "kind", "string") && is(s, "apiVersion", "string") && is(s, "metadata", "object") &&
		is(metadata, "name", "string") && is(metadata, "generateName", "string") {
		return s
	}
	object := *s
	object.properties = map[string]common.Schema{}
	maps.Copy(object.properties, s.properties)
	object.properties["kind"], object.properties["apiVersion"] = text, text
	object.properties["metadata"] = &Schema{kind: "object", properties: map[string]common.Schema{"name": text, "generateName": text}}
	return &object
}

// noValidations implements the validations of common.Schema: values are validated when they are
// written, and not when they are converted.
type noValidations struct{}

func (noValidations) Default() any                          { return nil }
func (noValidations) Pattern() string                       { return "" }
func (noValidations) Minimum() *float64                     { return nil }
func (noValidations) IsExclusiveMinimum() bool              { return false }
func (noValidations) Maximum() *float64                     { return nil }
func (noValidations) IsExclusiveMaximum() bool              { return false }
func (noValidations) MultipleOf() *float64                  { return nil }
func (noValidations) MinItems() *int64                      { return nil }
func (noValidations) MaxItems() *int64                      { return nil }
func (noValidations) MinLength() *int64                     { return nil }
func (noValidations) MaxLength() *int64                     { return nil }
func (noValidations) MinProperties() *int64                 { return nil }
func (noValidations) MaxProperties() *int64                 { return nil }
func (noValidations) Required() []string                    { return nil }
func (noValidations) Enum() []any                           { return nil }
func (noValidations) UniqueItems() bool                     { return false }
func (noValidations) AllOf() []common.Schema                { return nil }
func (noValidations) OneOf() []common.Schema                { return nil }
func (noValidations) AnyOf() []common.Schema                { return nil }
func (noValidations) Not() common.Schema                    { return nil }
func (noValidations) XValidations() []common.ValidationRule { return nil }

// Sample returns the JSON text of a value that the schema allows: always the same, and not empty
// if possible.
func (s *Schema) Sample() []byte {
	text, err := json.Marshal(s.sample())
	if err != nil {
		return []byte("null") // cannot happen: samples consist of JSON types
	}
	return text
}

func (s *Schema) sample() any {
	switch {
	case s.items != nil:
		return []any{s.items.sample()}
	case s.Value() != nil:
		return map[string]any{"sample": s.Value().sample()}
	case s.kind == "object":
		members := map[string]any{}
		for name := range s.properties {
			members[name] = s.Member(name).sample()
		}
		return members
	case s.kind == "boolean":
		return true
	case samples[s.Format()] != "":
		return samples[s.Format()]
	case s.kind == "string":
		return "80" // many expressions parse a number
	}
	return 80
}

// samples are strings of the formats with a CEL type of their own.
var samples = map[string]string{"date": "2006-01-02", "date-time": "2006-01-02T15:04:05Z", "duration": "1m0s", "byte": "ODA="}
