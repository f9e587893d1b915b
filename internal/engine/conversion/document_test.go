// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/internal/generate"
)

const documentFields = `{type: object, properties: {a: {type: integer}, b: {type: string}, q: {type: string, nullable: true}, l: {type: array, items: {type: object, properties: {c: {type: number}}}}, d: {type: array, items: {type: object, properties: {a: {type: integer}, b: {type: string, default: x}}}},
	o: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {in: {type: object, properties: {x: {type: string}}}}}}}`

func documentConverter(t testing.TB) *conversion.Converter {
	t.Helper()
	return converterOf(t, between(t,
		"config: {type: string}, list: {type: string}, any: {type: string}, back: "+spaces(documentFields),
		"config: "+spaces(documentFields)+", list: {type: array, items: {type: string}}, any: {x-kubernetes-preserve-unknown-fields: true}, back: {type: string}",
		"{cast: {from: .config, to: .config, as: YAML}}, {cast: {from: .list, to: .list, as: JSON}}, {cast: {from: .any, to: .any, as: YAML}}, {cast: {from: .back, to: .back, as: YAML}}"))
}

// TestCastDocument converts documents between v1, which has the text, and v2.
func TestCastDocument(t *testing.T) {
	c := documentConverter(t)
	roundTrips{
		"as it is written":        {"v1", `"config":"a: 1\nb: x\n"`, named("v2", "", `"config":{"a":1,"b":"x"}`)},
		"with a comment":          {"v1", `"config":"a: 1 # one\n"`, named("v2", `v1 {"/config":"a: 1 # one\n","@/config":["/config"]}`, `"config":{"a":1}`)},
		"with other names":        {"v1", `"config":"a: 1\nz: {y: 1}\n"`, named("v2", `v1 {"/config":"a: 1\nz: {y: 1}\n","@/config":["/config"]}`, `"config":{"a":1}`)},
		"with nulls":              {"v1", `"config":"b: null\nq: null\n"`, named("v2", `v1 {"/config":"b: null\nq: null\n","@/config":["/config"]}`, `"config":{"q":null}`)},
		"in unknown fields":       {"v1", `"config":"o:\n  in:\n    x: a\n  out: null\n"`, named("v2", "", `"config":{"o":{"in":{"x":"a"},"out":null}}`)},
		"of an empty object":      {"v1", `"config":"{}\n"`, named("v2", "", `"config":{}`)},
		"a number with a zero":    {"v1", `"config":"l: [{c: 1.50}]"`, named("v2", `v1 {"/config":"l: [{c: 1.50}]","@/config":["/config"]}`, `"config":{"l":[{"c":1.5}]}`)},
		"a whole number":          {"v1", `"config":"a: 1.0"`, named("v2", `v1 {"/config":"a: 1.0","@/config":["/config"]}`, `"config":{"a":1}`)},
		"with a default":          {"v1", `"config":"d:\n  - a: 1\n"`, named("v2", `v1 {"/config":"d:\n  - a: 1\n","@/config":["/config"]}`, `"config":{"d":[{"a":1,"b":"x"}]}`)},
		"with all defaults":       {"v1", `"config":"d:\n  - b: x\n"`, named("v2", "", `"config":{"d":[{"b":"x"}]}`)},
		"another type":            {"v1", `"config":"a: x"`, named("v2", `v1 {"/config":"a: x"}`, ``)},
		"another type inside":     {"v1", `"config":"l: [{c: x}]"`, named("v2", `v1 {"/config":"l: [{c: x}]"}`, ``)},
		"a list":                  {"v1", `"config":"[]"`, named("v2", `v1 {"/config":"[]"}`, ``)},
		"a text":                  {"v1", `"config":"hello"`, named("v2", `v1 {"/config":"hello"}`, ``)},
		"no text":                 {"v1", `"config":""`, named("v2", `v1 {"/config":""}`, ``)},
		"a null in the text":      {"v1", `"config":"null"`, named("v2", `v1 {"/config":"null"}`, ``)},
		"null":                    {"v1", `"config":null`, named("v2", "", `"config":null`)},
		"absent":                  {"v1", ``, named("v2", "", ``)},
		"no YAML":                 {"v1", `"config":"a: ]"`, named("v2", `v1 {"/config":"a: ]"}`, ``)},
		"a value":                 {"v2", `"config":{"b":"yes","a":1}`, named("v1", "", `"config":"a: 1\nb: \"yes\"\n"`)},
		"a value with a fraction": {"v2", `"config":{"l":[{"c":1.0}]}`, named("v1", `v2 {"/config":{"l":[{"c":1.0}]},"@/config":["/config"]}`, `"config":"l:\n  - c: 1\n"`)},
		"a value of the spoke":    {"v1", `"back":{"b":"x","a":7}`, named("v2", "", `"back":"a: 7\nb: x\n"`)},
		"a text of the hub":       {"v2", `"back":"a: 7 # seven"`, named("v1", `v2 {"/back":"a: 7 # seven","@/back":["/back"]}`, `"back":{"a":7}`)},
		"JSON":                    {"v1", `"list":"[\"a\",\"<\"]"`, named("v2", "", `"list":["a","<"]`)},
		"JSON with spaces":        {"v1", `"list":"[ ]"`, named("v2", `v1 {"/list":"[ ]","@/list":["/list"]}`, `"list":[]`)},
		"JSON with a duplicate":   {"v1", `"list":"[{\"a\":1,\"a\":1}]"`, named("v2", `v1 {"/list":"[{\"a\":1,\"a\":1}]"}`, ``)},
		"JSON of another type":    {"v1", `"list":"[1]"`, named("v2", `v1 {"/list":"[1]"}`, ``)},
		"YAML that is no JSON":    {"v1", `"list":"- a"`, named("v2", `v1 {"/list":"- a"}`, ``)},
		"a text without a type":   {"v1", `"any":"hello\n"`, named("v2", "", `"any":"hello"`)},
		"a number without a type": {"v2", `"any":7`, named("v1", "", `"any":"7\n"`)},
		"a map without a type":    {"v2", `"any":{"a":[{}],"b":null}`, named("v1", "", `"any":"a:\n  - {}\nb: null\n"`)},
	}.check(t, c)
	misfits{
		"no text":                  {roundTripTest{"v1", `"config":7`, named("v2", `v1 {"/config":7}`, ``)}, named("v1", `v1 {"/config":7}`, ``)},
		"a value with a duplicate": {roundTripTest{"v2", `"config":{"a":{"b":1,"b":2}}`, named("v1", `v2 {"/config":{"a":{"b":1,"b":2}}}`, ``)}, named("v2", `v2 {"/config":{"a":1,"a":2}}`, ``)},
	}.check(t, c)
}

// TestCastDocumentOfAnnotation has the text in an annotation.
func TestCastDocumentOfAnnotation(t *testing.T) {
	c := converterOf(t, between(t, "x: {type: string}", "x: {type: string}, config: "+spaces(documentFields), `{cast: {from: '.metadata.annotations["config"]', to: .config, as: JSON}}`))
	object := `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","annotations":{"config":"{\"a\":1}","other":"x"}}}`
	want := `{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"name":"w","annotations":{"other":"x"}},"config":{"a":1}}`
	wantRoundTrip(t, c, "v1", object, want, object)
}

// TestCastDocumentEdit edits what became of a text: the edit wins, and fields that only the text has
// stay.
func TestCastDocumentEdit(t *testing.T) {
	c := documentConverter(t)
	for name, test := range map[string]struct{ text, edited, want string }{
		"a member":              {`a: 1 # one\nb: x\n`, `{"a":2,"b":"x"}`, `a: 2\nb: x\n`},
		"beside other names":    {`a: 1\nz: {y: 1}\n`, `{"a":2}`, `a: 2\nz:\n  \"y\": 1\n`},
		"in an object":          {`o: {in: {x: a, z: 1}}\n`, `{"o":{"in":{"x":"b"}}}`, `o:\n  in:\n    x: b\n    z: 1\n`},
		"of the object around":  {`a: 1\no: {in: {x: a, z: 1}}\n`, `{"a":1}`, `a: 1\n`},
		"of nothing":            {`a: 1\nz: 1\n`, ``, ``},
		"of a text that is bad": {`a: ]`, `{"a":2}`, `a: 2\n`},
		"of an anchor":          {`o: {in: &x {x: a}, out: *x}`, `{"o":{"in":{"x":"b"},"out":{"x":"a"}}}`, `o:\n  in:\n    x: b\n  out:\n    x: a\n`},
	} {
		t.Run(name, func(t *testing.T) {
			object, want := decode(t, convert(t, c, named("v1", "", `"config":"`+test.text+`"`), "v2")), named("v1", "", ``)
			delete(object, "config")
			if test.edited != "" {
				object["config"], want = decode(t, test.edited), named("v1", "", `"config":"`+test.want+`"`)
			}
			edited := generate.Plain(object)
			wantConverted(t, c, edited, "v1", want)
		})
	}
}
