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

// Sample is the JSON text of a value that the schema allows: the same for the
// same schema, with something in it wherever something can be.
func Sample(s *schema.Structural) []byte {
	text, err := json.Marshal(sample(s))
	if err != nil {
		return []byte("null") // cannot be: it is made of what JSON has
	}
	return text
}

func sample(s *schema.Structural) any {
	switch {
	case s.Items != nil:
		return []any{sample(s.Items)}
	case s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil:
		return map[string]any{"sample": sample(s.AdditionalProperties.Structural)}
	case s.Type == "object":
		members := map[string]any{}
		for name, field := range s.Properties {
			members[name] = sample(&field)
		}
		return members
	case s.Type == "boolean":
		return true
	case s.Type == "string" && samples[formatOf(s)] != "":
		return samples[formatOf(s)]
	case s.Type == "string":
		return "80" // which many expressions want to read a number of
	}
	return 80
}

// samples are texts of the formats that make another type of them.
var samples = map[string]string{"date": "2006-01-02", "date-time": "2006-01-02T15:04:05Z", "duration": "1m0s", "byte": "ODA="}
