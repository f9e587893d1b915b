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

// Schema says what a value is made of, and not which values are valid. It is what
// a ruleset has of a field's schema, so that a converter pod needs no library that
// reads the schemas of definitions. The library of the API server that declares
// types, and makes values of expressions, reads it through the methods below.
//
// Reading is the only way to make one, and the compiler judges what it has read
// too: what it accepts is what converter pods follow.
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

// additional are the members of an object that it does not name.
type additional struct {
	of     *Schema
	allows bool
}

// ReadSchema reads the members of JSONSchemaProps that matter here, and passes
// over the others.
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
	for name, member := range read.Properties { // nil and not empty where there are none: the library tells them apart
		if s.properties == nil {
			s.properties = make(map[string]common.Schema, len(read.Properties))
		}
		s.properties[name] = &member
	}
	return nil
}

// UnmarshalJSON implements json.Unmarshaler: a schema, or whether there may be any.
func (a *additional) UnmarshalJSON(text []byte) error {
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		return json.Unmarshal(text, &a.allows)
	}
	a.of, a.allows = &Schema{}, true
	return json.Unmarshal(text, a.of)
}

// Member is the schema of an object's member, nil where it has no such member:
// the API server would take it away.
func (s *Schema) Member(name string) *Schema {
	if member, named := s.properties[name]; named {
		return member.(*Schema)
	}
	if s.additional != nil && s.additional.of != nil {
		return s.additional.of
	}
	if s.preserves || s.additional != nil && s.additional.allows ||
		s.embedded && (name == "apiVersion" || name == "kind" || name == "metadata") {
		return Anything
	}
	return nil
}

// Anything is the schema of what no schema describes.
var Anything = &Schema{preserves: true}

// Untyped reports whether a field may hold whatever JSON has.
func (s *Schema) Untyped() bool { return s.kind == "" && s.preserves && !s.intOrString }

// Element is the schema of a list's elements, nil where it says nothing of them.
func (s *Schema) Element() *Schema { return s.items }

// Value is the schema of the members that an object does not name, nil where it
// says nothing of them.
func (s *Schema) Value() *Schema {
	if s.additional == nil {
		return nil
	}
	return s.additional.of
}

// Type implements common.Schema, and so do all methods below.
func (s *Schema) Type() string { return s.kind }

// Format is that of a text. It counts for nothing else.
func (s *Schema) Format() string {
	if s.kind != "string" {
		return ""
	}
	return s.format
}

// Items are the elements' schema.
func (s *Schema) Items() common.Schema { return orNone(s.items) }

// Properties are the members that an object names.
func (s *Schema) Properties() map[string]common.Schema { return s.properties }

// AdditionalProperties are the members that an object does not name.
func (s *Schema) AdditionalProperties() common.SchemaOrBool {
	if s.additional == nil {
		return nil
	}
	return s.additional
}

// Schema implements common.SchemaOrBool.
func (a *additional) Schema() common.Schema { return orNone(a.of) }

// Allows implements common.SchemaOrBool.
func (a *additional) Allows() bool { return a.allows }

func orNone(s *Schema) common.Schema {
	if s == nil {
		return nil
	}
	return s
}

// Nullable reports whether the value may be null.
func (s *Schema) Nullable() bool { return s.nullable }

// IsXIntOrString reports whether the value is an integer or a string.
func (s *Schema) IsXIntOrString() bool { return s.intOrString }

// IsXEmbeddedResource reports whether the value is an object of Kubernetes.
func (s *Schema) IsXEmbeddedResource() bool { return s.embedded }

// IsXPreserveUnknownFields reports whether members that are not named stay.
func (s *Schema) IsXPreserveUnknownFields() bool { return s.preserves }

// XListType says how lists are compared.
func (s *Schema) XListType() string { return s.listType }

// XListMapKeys are the members that tell elements apart.
func (s *Schema) XListMapKeys() []string { return s.listKeys }

// XMapType says how objects are compared.
func (s *Schema) XMapType() string { return s.mapType }

// WithTypeAndObjectMeta gives an object of Kubernetes the members that each has, as
// apiextensions does it. What it says of metadata it says of no other member.
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

// noValidations are those of a schema that judges no value: whether a value is
// valid is decided when it is written, and not when it is converted.
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

// Sample is the JSON text of a value that the schema allows: the same for the
// same schema, with something in it wherever something can be.
func (s *Schema) Sample() []byte {
	text, err := json.Marshal(s.sample())
	if err != nil {
		return []byte("null") // cannot be: it is made of what JSON has
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
		return "80" // which many expressions want to read a number of
	}
	return 80
}

// samples are texts of the formats that make another type of them.
var samples = map[string]string{"date": "2006-01-02", "date-time": "2006-01-02T15:04:05Z", "duration": "1m0s", "byte": "ODA="}
