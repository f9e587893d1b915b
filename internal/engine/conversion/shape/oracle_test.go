// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"unicode/utf8"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape/strip"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// props is the schema of a field.
type props = apiextensionsv1.JSONSchemaProps

// oracle checks an object whose only field has a schema with the code of the API server.
type oracle struct {
	structural *schema.Structural
	validator  validation.SchemaValidator
}

// newOracle returns an error if the API server would not accept the schema.
func newOracle(field *props) (*oracle, error) {
	object := &props{Type: "object", Properties: map[string]props{"v": *field}}
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(object, internal, nil); err != nil {
		return nil, err
	}
	structural, err := schema.NewStructural(internal)
	if err != nil {
		return nil, err
	}
	if problems := schema.ValidateStructural(nil, structural); len(problems) > 0 {
		return nil, problems.ToAggregate()
	}
	validator, _, err := validation.NewSchemaValidator(internal)
	return &oracle{structural, validator}, err
}

// fits returns an error if the API server would refuse or change a value, except for defaults.
func (o *oracle) fits(value []byte) error {
	if !utf8.Valid(value) {
		return errors.New("not UTF-8")
	}
	object := map[string]any{}
	strict, err := kjson.UnmarshalStrict(fmt.Appendf(nil, `{"v":%s}`, value), &object)
	if err != nil || len(strict) > 0 {
		return fmt.Errorf("decoding: %w %v", err, strict)
	}
	before := runtime.DeepCopyJSON(object)
	coerceErr, unknown := objectmeta.CoerceWithOptions(nil, object, o.structural, false, objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	if coerceErr != nil || len(unknown) > 0 {
		return fmt.Errorf("coercing: %w %v", coerceErr, unknown)
	}
	if pruned := pruning.PruneWithOptions(object, o.structural, false, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}); len(pruned) > 0 {
		return fmt.Errorf("pruned: %v", pruned)
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(object, o.structural)
	defaulting.Default(object, o.structural)
	if !within(before, object, o.structural) {
		return errors.New("a null was dropped or replaced")
	}
	problems := validation.ValidateCustomResource(nil, object, o.validator)
	problems = append(problems, listtype.ValidateListSetsAndMaps(nil, o.structural, object)...)
	problems = append(problems, objectmeta.Validate(context.Background(), nil, object, o.structural, false)...)
	return problems.ToAggregate()
}

// within reports whether a value is part of another, except for the metadata of embedded objects,
// which the API server rewrites.
func within(value, other any, s *schema.Structural) bool {
	switch value := value.(type) {
	case map[string]any:
		others, _ := other.(map[string]any)
		for name, member := range value {
			if s != nil && s.XEmbeddedResource && name == "metadata" && member != nil {
				continue
			}
			again, found := others[name]
			if !found || !within(member, again, memberOf(s, name)) {
				return false
			}
		}
		return true
	case []any:
		others, _ := other.([]any)
		for i, element := range value {
			if i >= len(others) || !within(element, others[i], elementOf(s)) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(value, other)
}

func memberOf(s *schema.Structural, name string) *schema.Structural {
	if s == nil {
		return nil
	}
	if property, found := s.Properties[name]; found {
		return &property
	}
	if s.AdditionalProperties != nil {
		return s.AdditionalProperties.Structural
	}
	return nil
}

func elementOf(s *schema.Structural) *schema.Structural {
	if s == nil {
		return nil
	}
	return s.Items
}

// read strips a schema and reads it again.
func read(t testing.TB, field *props) *shape.Schema { return readBy(t, new(shape.Reader), field) }

// fits reads a value, and reports why it does not fit.
func fits(s *shape.Schema, value []byte) error {
	n, err := tree.NewArena().Read(value)
	if err != nil {
		return err
	}
	return s.Fits(n)
}

func readBy(t testing.TB, reader *shape.Reader, field *props) *shape.Schema {
	t.Helper()
	text, err := strip.Of(field)
	expect.NoError(t, err)
	s, err := reader.Read(text)
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return s
}
