// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// props is the schema of a field.
type props = apiextensionsv1.JSONSchemaProps

// Schemas generates the structural schemas of two versions of one kind.
func (c *Choices) Schemas() (spoke, hub *props) {
	hub = &props{Type: "object", Properties: c.fields(1)}
	spec := props{Type: "object", Properties: c.fields(2)}
	if c.isNested() && c.IntN(2) == 0 {
		spec.Properties[One(c, fieldNames...)] = c.listOfContainers()
	}
	hub.Properties["spec"] = spec
	return c.Changed(hub), hub
}

// Changed returns the schema of another version of the same kind.
func (c *Choices) Changed(s *props) *props {
	s = s.DeepCopy()
	c.change(s, 2)
	spec, found := s.Properties["spec"]
	if !found {
		spec = props{Type: "object", Properties: c.fields(2)}
	}
	s.Properties["spec"] = spec
	if c.isNested() {
		c.renameContainers(s)
		c.relocate(s)
	}
	return s
}

// fieldNames are few, so that both versions often have the same names.
var fieldNames = []string{"a", "b", "c", "d", "e", "f", "g", "h", "x.y/z~"}

// fields generates the fields of an object, with the given maximum depth.
func (c *Choices) fields(depth int) map[string]props {
	fields := map[string]props{}
	for range 1 + c.IntN(6) {
		fields[One(c, fieldNames...)] = c.field(depth)
	}
	return fields
}

func (c *Choices) field(depth int) props {
	field := c.scalar()
	if depth > 0 && c.IntN(2) == 0 {
		field = c.container(depth - 1)
	}
	field.Nullable = c.Rarely(12)
	return field
}

func (c *Choices) scalar() props {
	switch c.IntN(13) {
	case 12:
		return props{XPreserveUnknownFields: new(true)}
	case 0:
		return props{Type: "boolean"}
	case 1:
		return props{Type: "number"}
	case 2:
		return props{XIntOrString: true}
	case 3:
		return props{Type: "string", Enum: []apiextensionsv1.JSON{rawJSON(`"a"`), rawJSON(`"b"`), rawJSON(`""`)}}
	case 4:
		return props{Type: "string", Pattern: "^[a-z:]*$", MaxLength: new(int64(30))}
	case 5:
		return props{Type: "string", Format: One(c, "date-time", "duration", "ipv4")}
	case 6:
		return props{Type: "string", Default: new(rawJSON(`"a"`))}
	case 7:
		return props{Type: "integer", Minimum: new(float64(0)), Maximum: new(float64(65535))}
	case 8, 9:
		return props{Type: "integer"}
	}
	return props{Type: "string"}
}

func (c *Choices) container(depth int) props {
	switch c.IntN(10) {
	case 0:
		return listOf(c.scalar())
	case 1:
		list := listOf(props{Type: "string"})
		list.XListType = new("set")
		return list
	case 2, 3:
		list := listOf(c.structure(depth))
		if c.IntN(2) == 0 {
			list.Items.Schema.Properties["name"] = props{Type: One(c, "string", "integer")}
		}
		return list
	case 4, 5:
		list := listOf(c.structure(depth))
		key := One(c, "name", "a")
		list.Items.Schema.Properties[key] = props{Type: One(c, "string", "string", "integer")}
		list.Items.Schema.Required = []string{key}
		list.XListType, list.XListMapKeys = new("map"), []string{key}
		return list
	case 6:
		return mapOf(c.field(depth))
	case 7:
		return props{Type: "object", XPreserveUnknownFields: new(true), Properties: c.fields(depth)}
	case 8:
		return One(c, props{Type: "object", XEmbeddedResource: true, XPreserveUnknownFields: new(true)},
			listOf(listOf(c.structure(0))), mapOf(c.structure(depth)))
	}
	return c.structure(depth)
}

func (c *Choices) structure(depth int) props {
	return props{Type: "object", Properties: c.fields(depth)}
}

func listOf(elements props) props {
	return props{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &elements}}
}

func mapOf(values props) props {
	return props{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &values}}
}

func rawJSON(text string) apiextensionsv1.JSON { return apiextensionsv1.JSON{Raw: []byte(text)} }

// change turns a schema into that of another version: fields are removed, added, renamed or get
// another type. The keys of lists stay.
func (c *Choices) change(s *props, depth int) {
	if s.Items != nil && s.Items.Schema != nil {
		c.change(s.Items.Schema, depth)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		c.change(s.AdditionalProperties.Schema, depth)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		field := s.Properties[name]
		if slices.Contains(s.Required, name) {
			continue
		}
		choice := c.IntN(8)
		if field.Items != nil && c.Rarely(3) {
			choice = 3
		}
		switch choice {
		case 0:
			delete(s.Properties, name)
		case 1:
			delete(s.Properties, name)
			s.Properties[One(c, fieldNames...)] = field
		case 2:
			s.Properties[name] = c.field(depth)
		case 3:
			s.Properties[name] = c.withOtherShape(field, depth)
		default:
			c.change(&field, depth-1)
			field.Nullable = field.Nullable != c.Rarely(12)
			s.Properties[name] = field
		}
	}
	if s.Properties != nil && c.Rarely(3) {
		if name := One(c, fieldNames...); !slices.Contains(s.Required, name) {
			s.Properties[name] = c.field(depth)
		}
	}
}

// withOtherShape returns a field as a rule would convert it: a list for a value, a string for an
// integer, a map for a list.
func (c *Choices) withOtherShape(field props, depth int) props {
	switch {
	case c.Rarely(4):
		return c.widened(field)
	case field.Type == "integer":
		return props{Type: "string"}
	case field.Type == "string" && c.IntN(2) == 0:
		return props{Type: "integer"}
	case field.Items != nil && field.Items.Schema.Type == "object" && c.Often(3):
		values := field.Items.Schema.DeepCopy()
		for _, key := range append(slices.Clone(field.XListMapKeys), "name") {
			delete(values.Properties, key)
		}
		values.Required = nil
		return mapOf(*values)
	case field.Items != nil:
		return *field.Items.Schema
	case depth > 0:
		return listOf(field)
	}
	return field
}

// widened returns a field that allows all values of another field, and more.
func (c *Choices) widened(field props) props {
	switch {
	case c.Rarely(3):
		return props{XPreserveUnknownFields: new(true), Nullable: c.Rarely(3)}
	case field.Type == "integer":
		return One(c, props{XIntOrString: true}, props{Type: "number"})
	case field.Type == "string":
		return props{XIntOrString: true}
	case field.Items != nil:
		return listOf(c.widened(*field.Items.Schema))
	case field.AdditionalProperties != nil && field.AdditionalProperties.Schema != nil:
		return mapOf(c.widened(*field.AdditionalProperties.Schema))
	case field.Properties != nil:
		return props{Type: "object", XPreserveUnknownFields: new(true)}
	}
	field.Nullable = true
	return field
}
