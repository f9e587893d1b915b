// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape_test

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// schemaOf reads the YAML of a schema.
func schemaOf(t testing.TB, text string) *props {
	t.Helper()
	s := &props{}
	if err := yaml.UnmarshalStrict([]byte(text), s); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s
}

func TestFits(t *testing.T) {
	const (
		object   = "{type: object, properties: {a: {type: string}, b: {type: integer}}}"
		ports    = "{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [port, protocol], items: {type: object, required: [port, protocol], properties: {port: {type: integer}, protocol: {type: string, default: TCP}}}}"
		named    = "{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}}}}"
		set      = "{type: array, x-kubernetes-list-type: set, items: {type: string}}"
		loose    = "{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: object, properties: {b: {type: string}}}}}"
		resource = "{type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}"
	)
	for _, c := range []struct{ schema, value, want string }{
		{"{type: string}", `"a"`, ""},
		{"{type: string}", ` "a\u00e9\n" `, ""},
		{"{type: string, enum: [a, b]}", `{"mode":{}}`, "the value must be a string, not an object"},
		{"{type: string, enum: [a, b]}", `{}`, "the value must be a string, not an object"},
		{"{type: string, enum: [a, b]}", `"c"`, "the value is none of the allowed values"},
		{"{type: string, enum: [a, b]}", `"\u0061"`, ""},
		{"{type: string}", `null`, "the value must be a string, not null"},
		{"{type: string, nullable: true}", `null`, ""},
		{"{type: string, nullable: true, enum: [a]}", `null`, "the value is none of the allowed values"},
		{"{type: string, default: a}", `null`, "the value must be a string, not null"},
		{"{type: string, pattern: '^a+$'}", `"aab"`, "the value does not match the pattern"},
		{"{type: string, pattern: '^a+$'}", `"aaa"`, ""},
		{"{type: string, maxLength: 2}", `"éé"`, ""},
		{"{type: string, maxLength: 2}", `"ééé"`, "the value is too long"},
		{"{type: string, minLength: 1}", `""`, "the value is too short"},
		{"{type: string, format: date-time}", `"2026-01-02T03:04:05Z"`, ""},
		{"{type: string, format: date-time}", `"yesterday"`, "the value is not of the type or format"},
		{"{type: string, format: date-time}", `[]`, "the value must be a string, not a list"},
		{"{type: string, format: unheard-of}", `"a"`, ""},
		{"{type: integer}", `9007199254740993`, ""},
		{"{type: integer, enum: [9007199254740993]}", `9007199254740993`, ""},
		{"{type: integer, enum: [9007199254740993]}", `9007199254740992`, "the value is none of the allowed values"},
		{"{type: integer}", `9223372036854775807`, ""},
		{"{type: integer}", `9223372036854775808`, "the value is not of the type or format"},
		{"{type: integer}", `1.5`, "the value is not of the type or format"},
		{"{type: integer}", `1.0`, ""},
		{"{type: integer, format: int32}", `2147483648`, "the value is not within its limits"},
		{"{type: integer, minimum: 1, maximum: 3}", `4`, "the value is greater than the maximum"},
		{"{type: integer, minimum: 1, exclusiveMinimum: true}", `1`, "the value is less than the minimum"},
		{"{type: integer, multipleOf: 5}", `7`, "the value is not a multiple of the factor"},
		{"{type: number}", `1e400`, "the value is a number that is too large"},
		{"{type: number}", `-1.5E+3`, ""},
		{"{type: boolean}", `true`, ""},
		{"{type: boolean}", `"true"`, "the value must be a boolean, not a string"},
		{"{x-kubernetes-int-or-string: true}", `80`, ""},
		{"{x-kubernetes-int-or-string: true}", `"http"`, ""},
		{"{x-kubernetes-int-or-string: true}", `[]`, "the value must be an integer or a string, not a list"},
		{"{x-kubernetes-int-or-string: true}", `1.5`, "the value is not of the type or format"},
		{object, `{"a":"x","b":1}`, ""},
		{object, `{"a":"x","c":1}`, ".c is not in the schema"},
		{object, `{"a":null}`, ".a must be a string, not null"},
		{"{type: object, required: [a], properties: {a: {type: string}}}", `{}`, ".a is required"},
		{"{type: object, required: [a], properties: {a: {type: string, default: b}}}", `{}`, ""},
		{"{type: object, minProperties: 1, additionalProperties: {type: integer}}", `{}`, "the value has too few members"},
		{"{type: object, additionalProperties: {type: integer}}", `{"x":1,"y":"2"}`, ".y must be an integer, not a string"},
		{"{type: object, additionalProperties: true}", `{"x":1,"y":null}`, ""},
		{"{type: object, additionalProperties: true}", `{"x":{"y":1}}`, ".x.y is not in the schema"},
		{loose, `{"z":{"z":[{"z":null}]},"a":{"b":""}}`, ""},
		{loose, `{"a":{"c":""}}`, ".a.c is not in the schema"},
		{"{type: array, maxItems: 1, items: {type: string}}", `["a","b"]`, "the value has too many elements"},
		{"{type: array, items: {type: string, enum: [a]}}", `["a","b"]`, "[1] is none of the allowed values"},
		{"{type: array, items: {type: string}}", `["a",null]`, "[1] must be a string, not null"},
		{set, `["a","b"]`, ""},
		{set, `["a","b","a"]`, "[2] is in the set twice"},
		{named, `[{"name":"a"},{"name":"b"}]`, ""},
		{named, `[{"name":"a"},{"name":"a"}]`, "[1] has the keys of another element"},
		{named, `[{}]`, "[0].name is required"},
		{ports, `[{"port":1,"protocol":"UDP"},{"port":1}]`, ""},
		{ports, `[{"port":1,"protocol":"TCP"},{"port":1}]`, "[1] has the keys of another element"},
		{"{type: object, properties: {a: {type: string}, b: {type: string}}, oneOf: [{required: [a]}, {required: [b]}]}", `{"a":""}`, ""},
		{"{type: object, properties: {a: {type: string}, b: {type: string}}, oneOf: [{required: [a]}, {required: [b]}]}", `{"a":"","b":""}`, "the value does not fit exactly one of oneOf"},
		{"{type: integer, anyOf: [{maximum: 1}, {minimum: 5}]}", `3`, "the value fits none of anyOf"},
		{"{type: integer, not: {enum: [3]}}", `3`, "the value fits what it must not"},
		{"{type: object, properties: {a: {type: string}}, allOf: [{properties: {a: {maxLength: 1}}}]}", `{"a":"xx"}`, ".a is too long"},
		{resource, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":1}}`, ""},
		{resource, `{"kind":"ConfigMap"}`, ".apiVersion is required"},
		{resource, `{"apiVersion":"v1","kind":"Config Map"}`, ".kind is not a kind"},
		{resource, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"nme":"a"}}`, ".metadata is not the metadata of an object"},
		{resource, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a/b"}}`, ".metadata does not validate as metadata: metadata.name"},
	} {
		t.Run(c.schema+c.value, func(t *testing.T) {
			s := schemaOf(t, c.schema)
			got := ""
			if err := fits(read(t, s), []byte(c.value)); err != nil {
				got = err.Error()
			}
			expect.Equal(t, "error", c.want, got)
			agrees(t, s, c.value, got)
		})
	}
}

// agrees compares a result with the API server's own code.
func agrees(t *testing.T, s *props, value, got string) {
	t.Helper()
	o, err := newOracle(s)
	expect.NoError(t, err)
	err = o.fits([]byte(value))
	if knownDifference := s.Format == "date-time" && value == "[]"; (err == nil) != (got == "") && !knownDifference {
		t.Errorf("got %q, the API server says %v", got, err)
	}
}

func TestFitsAnything(t *testing.T) {
	s := read(t, nil)
	for _, value := range []string{`null`, `{"a":[1,{"b":null}]}`, `"x"`, `1.5`} {
		if err := fits(s, []byte(value)); err != nil {
			t.Errorf("%s: %v", value, err)
		}
	}
	expect.Equal(t, "that something may be in anything", true, s.Field("a").Field("b").Items() != nil)
}

func TestFitsErrorIsShort(t *testing.T) {
	long := strings.Repeat("geheim", 200_000)
	s := read(t, schemaOf(t, "{type: object, additionalProperties: {type: string, maxLength: 5, enum: [a]}}"))
	deep := read(t, nil)
	for _, err := range []error{
		fits(s, fmt.Appendf(nil, `{%q:"b"}`, long)), fits(s, fmt.Appendf(nil, `{"a":%q}`, long)), fits(s, fmt.Appendf(nil, `{%q:1}`, long)),
		fits(deep, []byte(strings.Repeat(`{"abc":`, 9000)+`{"a":1,"a":2}`+strings.Repeat("}", 9000))),
	} {
		if err == nil || len(err.Error()) > 500 {
			t.Errorf("error of %d bytes", len(fmt.Sprint(err)))
		}
	}
}

// TestFitsHostile checks values of about 1 MB that are constructed to be slow.
func TestFitsHostile(t *testing.T) {
	anything := read(t, nil)
	enums := read(t, schemaOf(t, "{type: array, items: {type: string, enum: [a]}}"))
	filled := read(t, schemaOf(t, "{type: array, items: {type: object, required: [a], properties: {a: {type: object, default: {b: x}, properties: {b: {type: string, enum: [x]}}}}}}"))
	many := func(n int, element string) string {
		return "[" + strings.Repeat(element+",", n) + element + "]"
	}
	var members strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&members, `"m%d":1,`, i)
	}
	for name, c := range map[string]struct {
		fits  error
		wrong bool
	}{
		"as deep as the API server allows":  {fits: fits(anything, []byte(strings.Repeat("[", 9999)+strings.Repeat("]", 9999)))},
		"deeper than the API server allows": {fits: fits(anything, []byte(strings.Repeat("[", 10001)+strings.Repeat("]", 10001))), wrong: true},
		"a million brackets":                {fits: fits(anything, []byte(strings.Repeat(`{"a":[`, 200_000))), wrong: true},
		"many members":                      {fits: fits(anything, []byte("{"+members.String()+`"m":1}`))},
		"many members and one twice":        {fits: fits(anything, []byte("{"+members.String()+`"m0":1}`)), wrong: true},
		"many wrong elements":               {fits: fits(enums, []byte(many(250_000, `"b"`))), wrong: true},
		"many elements with defaults":       {fits: fits(filled, []byte(many(250_000, `{}`)))},
		"a long text":                       {fits: fits(anything, []byte(`"`+strings.Repeat(`\u0041`, 200_000)+`"`))},
	} {
		expect.Equal(t, fmt.Sprintf("%s: that it is refused: %v", name, c.fits), c.wrong, c.fits != nil)
	}
}

func TestFitsManyWrongElementsEndsAtTheFirst(t *testing.T) {
	s := read(t, schemaOf(t, "{type: array, items: {type: string, pattern: '^a$'}}"))
	value := []byte(`[` + strings.Repeat(`"b",`, 250_000) + `"b"]`)
	expect.Equal(t, "error", "[0] does not match the pattern", fmt.Sprint(fits(s, value)))
}

// TestFitsAllocatesNothing checks that usual objects cause no allocations.
func TestFitsAllocatesNothing(t *testing.T) {
	for schema, value := range map[string]string{
		"{type: string}": `"nginx:1.27"`, "{type: integer}": `8080`,
		"{type: object, properties: {a: {type: string}, b: {type: object, additionalProperties: {type: integer}}}}": `{"a":"b","b":{"c":1,"d":2}}`,
	} {
		s := read(t, schemaOf(t, schema))
		n, err := tree.NewArena().Read([]byte(value))
		expect.NoError(t, err)
		expect.Equal(t, schema+": allocations", 0, testing.AllocsPerRun(100, func() { _ = s.Fits(n) }))
	}
}
