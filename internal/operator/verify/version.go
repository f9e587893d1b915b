// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
)

// version treats objects of one version like an API server.
type version struct {
	source      *apiextensionsv1.CustomResourceDefinitionVersion
	structural  *schema.Structural
	validator   validation.SchemaValidator
	expressions *cel.Validator
	// filled is an object with a value in every field.
	filled any
}

// newVersion prepares the schema of a version. A version without a schema allows everything.
func newVersion(of *apiextensionsv1.CustomResourceDefinitionVersion) (*version, error) {
	internal, structural, err := schemaOf(of)
	if err != nil {
		return nil, err
	}
	validator, _, err := validation.NewSchemaValidator(internal)
	if err != nil {
		return nil, fmt.Errorf("version %s: %w", of.Name, err)
	}
	return &version{source: of, structural: structural, validator: validator, expressions: cel.NewValidator(structural, true, celconfig.PerCallLimit)}, nil
}

// schemaOf returns the schema of a version in two forms.
func schemaOf(of *apiextensionsv1.CustomResourceDefinitionVersion) (*apiextensions.JSONSchemaProps, *schema.Structural, error) {
	anything := true
	source := &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &anything}
	if of.Schema != nil && of.Schema.OpenAPIV3Schema != nil {
		source = of.Schema.OpenAPIV3Schema
	}
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(source, internal, nil); err != nil {
		return nil, nil, fmt.Errorf("version %s: %w", of.Name, err)
	}
	structural, err := schema.NewStructural(internal)
	if err != nil {
		return nil, nil, fmt.Errorf("version %s: the schema is not structural: %w", of.Name, err)
	}
	return internal, structural, nil
}

// value is an object as text, and decoded with the text of its numbers.
type value struct {
	text []byte
	tree any
}

// accept treats an object like an API server that reads it: it prunes unknown fields,
// and nulls that the schema does not allow. It returns the object without them, and
// what was pruned.
func (v *version) accept(text []byte) (value, []Difference, error) {
	tree, err := preserved.Decode(text)
	if err != nil {
		return value{}, nil, err
	}
	hadNulls := hasNull(tree)
	pruned := pruning.PruneWithOptions(tree, v.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	defaulting.PruneNonNullableNullsWithoutDefaults(tree, v.structural)
	if len(pruned) == 0 && !hadNulls {
		return value{text, tree}, nil, nil
	}
	before, err := preserved.Decode(text)
	if err != nil {
		return value{}, nil, err
	}
	lost := Differences(before, tree)
	if len(lost) > 0 {
		text = preserved.Encode(tree)
	}
	return value{text, tree}, lost, nil
}

// create treats an object like an API server that creates it: it also fills in the
// defaults of the schema.
func (v *version) create(text []byte) (value, []Difference, error) {
	x, pruned, err := v.accept(text)
	if err != nil {
		return x, pruned, err
	}
	defaulting.Default(x.tree, v.structural)
	// Defaults are Go values; decoding makes them equal to all others.
	x.text = preserved.Encode(x.tree)
	x.tree, err = preserved.Decode(x.text)
	return x, pruned, err
}

// fill returns an object as an API server stores it on a write.
func (v *version) fill(tree any) (value, error) {
	x, _, err := v.create(preserved.Encode(tree))
	return x, err
}

// validate validates an object against the schema, like an API server on the next
// write: with defaults filled in, and with the schema's expressions.
func (v *version) validate(ctx context.Context, x value) field.ErrorList {
	object := map[string]any{}
	if err := utiljson.Unmarshal(x.text, &object); err != nil {
		return field.ErrorList{field.Invalid(field.NewPath(""), nil, err.Error())}
	}
	defaulting.Default(object, v.structural)
	errs := validation.ValidateCustomResource(nil, object, v.validator)
	errs = append(errs, objectmeta.Validate(ctx, nil, object, v.structural, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.structural, object)...)
	// Expressions may depend on a valid structure.
	if len(errs) == 0 && v.expressions != nil {
		errs, _ = v.expressions.Validate(ctx, nil, v.structural, object, nil, celconfig.RuntimeCELCostBudget)
	}
	return errs
}

func hasNull(tree any) bool {
	switch tree := tree.(type) {
	case nil:
		return true
	case map[string]any:
		for _, member := range tree {
			if hasNull(member) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(tree, hasNull)
	}
	return false
}
