// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"encoding/json"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape/strip"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// fits reports whether the schema allows a value of a rule. It adds an error otherwise.
func (c *compiler) fits(raw []byte, s *schema.Structural, fldPath place) bool {
	arena := tree.NewArena()
	defer arena.Free()
	value, err := arena.Read(raw)
	if err != nil {
		c.invalid(fldPath, string(raw), "is not of type %s: write a value that the schema of the field allows", typeName(s))
		return false
	}
	of, err := shapeOf(s)
	if err == nil {
		err = of.Fits(value)
	}
	if err != nil {
		c.invalid(fldPath, string(raw), "%s: write a value that the schema of the field allows", err)
	}
	return err == nil
}

// shapeOf returns the types and enums of a schema in the form in which converter pods check values.
func shapeOf(s *schema.Structural) (*shape.Schema, error) {
	s = limitedTo(s, func(of schema.ValueValidation) schema.ValueValidation { return schema.ValueValidation{Enum: of.Enum} })
	text, err := s.ToKubeOpenAPI().MarshalJSON()
	props := &apiextensionsv1.JSONSchemaProps{}
	if err == nil {
		err = json.Unmarshal(text, props)
	}
	if err != nil {
		return nil, err
	}
	stripped, err := strip.Of(props)
	if err != nil {
		return nil, err
	}
	return shape.Read(stripped)
}
