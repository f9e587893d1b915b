// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"encoding/json"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// Shape is the part of a schema that a Program needs, as JSONSchemaProps: what a
// value is made of, and not which values are valid.
func Shape(s *schema.Structural) (json.RawMessage, error) { return json.Marshal(shape(s)) }

func shape(s *schema.Structural) *apiextensionsv1.JSONSchemaProps {
	props := &apiextensionsv1.JSONSchemaProps{
		Type: s.Type, Nullable: s.Nullable, XIntOrString: s.XIntOrString, XEmbeddedResource: s.XEmbeddedResource,
		XListType: s.XListType, XListMapKeys: s.XListMapKeys, XMapType: s.XMapType,
	}
	if s.XPreserveUnknownFields {
		props.XPreserveUnknownFields = &s.XPreserveUnknownFields
	}
	if s.ValueValidation != nil {
		props.Format = s.ValueValidation.Format
	}
	if s.Items != nil {
		props.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: shape(s.Items)}
	}
	if values := s.AdditionalProperties; values != nil {
		props.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: values.Bool}
		if values.Structural != nil {
			props.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: shape(values.Structural)}
		}
	}
	for name, field := range s.Properties {
		if props.Properties == nil {
			props.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
		}
		props.Properties[name] = *shape(&field)
	}
	return props
}

// ReadShape reads what Shape wrote.
func ReadShape(text json.RawMessage) (*schema.Structural, error) {
	props, internal := &apiextensionsv1.JSONSchemaProps{}, &apiextensions.JSONSchemaProps{}
	if err := json.Unmarshal(text, props); err != nil {
		return nil, fmt.Errorf("the schema is not readable: %w", err)
	}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, internal, nil); err != nil {
		return nil, fmt.Errorf("the schema is not readable: %w", err)
	}
	return schema.NewStructural(internal)
}
