// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape_test

import (
	"encoding/json"
	"flag"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/internal/generate"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape/strip"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

var rounds = flag.Int("rounds", 3000, "random schemas that are held against the API server's code")

// one is the result for one schema and its values.
type one struct {
	refused, fits, misfits, lenient int
}

// TestFitsAsTheAPIServer compares Fits with the API server's own code, for random schemas and
// values.
func TestFitsAsTheAPIServer(t *testing.T) {
	var total one
	for seed := range *rounds {
		result := compare(t, generate.Choose(uint64(seed), nil))
		total.fits, total.misfits = total.fits+result.fits, total.misfits+result.misfits
		total.refused, total.lenient = total.refused+result.refused, total.lenient+result.lenient
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d schemas, %d more are not valid: %d values fit, %d do not; %d lists for strings with a format left out",
		*rounds-total.refused, total.refused, total.fits, total.misfits, total.lenient)
	if total.fits < total.misfits/20 || total.misfits < total.fits/20 {
		t.Error("the values are too much of one kind")
	}
}

func FuzzFits(f *testing.F) {
	for seed := range uint64(8) {
		bytes := make([]byte, 64)
		random := rand.New(rand.NewPCG(seed, 1))
		for i := range bytes {
			bytes[i] = byte(random.Uint32())
		}
		f.Add(seed, bytes)
	}
	f.Fuzz(func(t *testing.T, seed uint64, bytes []byte) { compare(t, generate.Choose(seed, bytes)) })
}

// FuzzFitsText lets the fuzzer write the value, for a schema with all features.
func FuzzFitsText(f *testing.F) {
	s := schemaOf(f, `{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {
		a: {type: string, maxLength: 3}, b: {type: integer, enum: [1, 9007199254740993]}, c: {type: array, x-kubernetes-list-type: set, items: {type: string}},
		d: {type: object, properties: {a: {type: number, nullable: true, default: 1}}}, e: {x-kubernetes-int-or-string: true}}}`)
	read := read(f, s)
	o, err := newOracle(s)
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{`{"a":"b"}`, `{"b":9007199254740993,"c":["a","b"]}`, `{"d":{"a":null},"e":"\u00e9"}`, `{"z":[{"z":1,"z":2}]}`, `{"e":-0.0e-1}`, ` [ ] `, `{"a":"\ud800"}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) {
			if fits(read, text) == nil {
				t.Errorf("%q fits and is not JSON", text)
			}
			return
		}
		if got, want := fits(read, text), o.fits(text); (got == nil) != (want == nil) {
			t.Errorf("%s: got %v, the API server says %v", text, got, want)
		}
	})
}

// randomSchema generates a schema, its stripped form, and what reads it. The oracle is nil if the API server refuses the schema.
func randomSchema(t *testing.T, c *generate.Choices) (s *props, text []byte, o *oracle, read *shape.Schema) {
	t.Helper()
	s = field(c)
	o, err := newOracle(s)
	if err != nil {
		return s, nil, nil, nil
	}
	text, err = strip.Of(s)
	expect.NoError(t, err)
	read, err = shape.Read(text)
	expect.NoError(t, err)
	return s, text, o, read
}

// valuesOf returns a function that generates values of a schema, and some others, as JSON.
func valuesOf(c *generate.Choices, o *oracle) func() string {
	structural := o.structural.Properties["v"]
	objects := &generate.Objects{Choices: c, MisfitEvery: generate.One(c, 0, 0, 5, 30)}
	return func() string { return generate.Plain(objects.Value(&structural)) }
}

// compare generates a schema, values of it, and other values.
func compare(t *testing.T, c *generate.Choices) (result one) {
	t.Helper()
	s, text, o, read := randomSchema(t, c)
	if o == nil {
		return one{refused: 1}
	}
	next := valuesOf(c, o)
	for range 12 {
		value := []byte(next())
		got, want := fits(read, value), o.fits(value)
		switch {
		case got != nil && want == nil && strings.Contains(got.Error(), "must be a string, not a list"):
			result.lenient++
		case (got == nil) != (want == nil):
			t.Errorf("%s\n%s\n%s\ngot %v\nthe API server says %v", plainSchema(s), text, value, got, want)
		case got == nil:
			result.fits++
		default:
			result.misfits++
		}
	}
	return result
}

func plainSchema(s *props) string {
	text, _ := json.Marshal(s)
	return string(text)
}

// field is the schema of a field, with limits that the API server allows.
func field(c *generate.Choices) *props {
	_, root := c.Schemas()
	s := root.Properties[generate.One(c, slices.Sorted(maps.Keys(root.Properties))...)]
	limit(c, &s)
	return &s
}

// limit adds limits to a schema and everything in it.
func limit(c *generate.Choices, s *props) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		member := s.Properties[name]
		limit(c, &member)
		s.Properties[name] = member
		if c.Rarely(8) && !slices.Contains(s.Required, name) {
			s.Required = append(s.Required, name)
		}
	}
	if s.Items != nil {
		limit(c, s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		limit(c, s.AdditionalProperties.Schema)
	}
	s.Nullable = s.Nullable || c.Rarely(20)
	if c.Rarely(3) {
		values(c, s)
	}
	if c.Rarely(6) {
		junction(c, s)
	}
	if c.Rarely(8) {
		extend(c, s)
	}
	if c.Rarely(8) {
		s.Default = defaultOf(c, s)
	}
	if s.Default != nil && !allowed(s, s.Default.Raw) {
		s.Default = nil
	}
}

func raw(text string) apiextensionsv1.JSON { return apiextensionsv1.JSON{Raw: []byte(text)} }

// values adds the limits of a schema's type.
func values(c *generate.Choices, s *props) {
	small := new(int64(c.IntN(3)))
	large := new(int64(1 + c.IntN(4)))
	bound := new(float64(c.IntN(90)))
	switch s.Type {
	case "string":
		*s = generate.One(c, props{MinLength: small}, props{MaxLength: large}, props{Enum: []apiextensionsv1.JSON{raw(`"a"`), raw(`"7"`), raw("null")}},
			props{Format: generate.One(c, "date-time", "duration", "uuid", "byte", "made-up", "int32")}, props{Pattern: "^.?$"})
		s.Type = "string"
	case "integer", "number":
		kind := s.Type
		*s = generate.One(c, props{Minimum: bound}, props{Maximum: bound, ExclusiveMaximum: true}, props{Minimum: bound, ExclusiveMinimum: true}, props{MultipleOf: new(float64(5))},
			props{Enum: []apiextensionsv1.JSON{raw("1"), raw("80"), raw("9007199254740993")}}, props{Format: generate.One(c, "int32", "int64", "float", "double", "date")}, props{MultipleOf: new(0.5)})
		s.Type = kind
	case "array":
		*generate.One(c, &s.MinItems, &s.MaxItems) = generate.One(c, small, large)
	case "object":
		*generate.One(c, &s.MinProperties, &s.MaxProperties) = generate.One(c, small, large)
	}
}

// junction adds allOf, anyOf, oneOf or not.
func junction(c *generate.Choices, s *props) {
	inside := []props{nested(c, s), nested(c, s)}
	switch c.IntN(4) {
	case 0:
		s.AllOf = inside
	case 1:
		s.AnyOf = inside
	case 2:
		s.OneOf = inside
	default:
		s.Not = &inside[0]
	}
}

// nested returns a schema for a junctor, which limits a value further.
func nested(c *generate.Choices, s *props) props {
	names := slices.Sorted(maps.Keys(s.Properties))
	limited := props{Type: s.Type}
	switch {
	case len(names) > 0 && c.IntN(2) == 0:
		limited = props{Required: []string{generate.One(c, names...)}}
	case len(names) > 0:
		name := generate.One(c, names...)
		member := s.Properties[name]
		return props{Properties: map[string]props{name: nested(c, &member)}}
	case s.Items != nil && c.IntN(2) == 0:
		items := nested(c, s.Items.Schema)
		return props{Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &items}}
	case s.XIntOrString:
		return generate.One(c, props{Pattern: "^[0-9]+$"}, props{Maximum: new(float64(50))}, props{Enum: []apiextensionsv1.JSON{raw("80"), raw(`"80"`)}})
	default:
		values(c, &limited)
	}
	limited.Type, limited.Default, limited.Nullable = "", nil, false
	return limited
}

// extend adds extensions of Kubernetes.
func extend(c *generate.Choices, s *props) {
	switch {
	case s.Type == "object" && s.AdditionalProperties == nil:
		*s = *generate.One(c,
			&props{Type: "object", Properties: s.Properties, Required: s.Required, XPreserveUnknownFields: new(true)},
			&props{Type: "object", Properties: s.Properties, XPreserveUnknownFields: new(true), XEmbeddedResource: true},
			&props{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true}},
			&props{XPreserveUnknownFields: new(true)})
	case s.Type == "array" && s.XListType == nil:
		*s = *generate.One(c,
			&props{Type: "array", Items: s.Items, XPreserveUnknownFields: new(true)},
			&props{Type: "array", Items: s.Items, XListType: new("set")},
			&props{XPreserveUnknownFields: new(true)},
			&props{Type: "array", XPreserveUnknownFields: new(true)})
	}
}

// defaultOf returns a default that the API server allows, nil if there is none.
func defaultOf(c *generate.Choices, s *props) *apiextensionsv1.JSON {
	o, err := newOracle(s)
	if err != nil {
		return nil
	}
	field := o.structural.Properties["v"]
	value := []byte(generate.Plain((&generate.Objects{Choices: c}).Value(&field)))
	return &apiextensionsv1.JSON{Raw: value}
}

// allowed reports whether the API server allows a value as the default.
func allowed(s *props, value []byte) bool {
	o, err := newOracle(s)
	return err == nil && string(value) != "null" && o.fits(value) == nil
}
