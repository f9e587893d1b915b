// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package celcheck

import (
	"encoding/json"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/expression"
)

// Shape returns the part of a schema that expressions need in converter pods, as JSONSchemaProps:
// the types of values, without validation. expression.ReadSchema reads it.
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

// shapeOf returns the schema in the form of a converter pod.
func shapeOf(s *schema.Structural) (*expression.Schema, error) {
	text, err := Shape(s)
	if err != nil {
		return nil, err
	}
	return expression.ReadSchema(text)
}
