// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestConvert converts from v1 to v2 and back.
func TestConvert(t *testing.T) {
	for name, test := range map[string]struct{ v1, v2, rules, object, want string }{
		"nothing but a kind": {"a: {type: string}", "b: {type: string}", "{move: {from: .a, to: .b}}", "", widget("v2", "")},
		"swap": {
			"a: {type: string}, b: {type: string}", "a: {type: string}, b: {type: string}",
			"{move: {from: .a, to: .b}}, {move: {from: .b, to: .a}}", `"a":"1","b":"2"`, widget("v2", `"b":"1","a":"2"`),
		},
		"subtree": {
			"o: {type: object, properties: {a: {type: integer}}}", "p: {type: object, properties: {q: {type: object, properties: {a: {type: integer}}}}}",
			"{move: {from: .o, to: .p.q}}", `"o":{ "a": 12345678901234567890 }`, widget("v2", `"p":{"q":{ "a": 12345678901234567890 }}`),
		},
		"a null moves": {"a: {type: string}", "b: {type: string}", "{move: {from: .a, to: .b}}", `"a":null`, widget("v2", `"b":null`)},
		"untouched bytes": {
			"a: {type: string}, o: {type: object, properties: {x: {type: number}}}", "b: {type: string}, o: {type: object, properties: {x: {type: number}}}",
			"{move: {from: .a, to: .b}}", `"o":{ "x" : 0.10,"y":1e400, "\u0061":"\/" }`, widget("v2", `"o":{ "x" : 0.10,"y":1e400, "\u0061":"\/" }`),
		},
		"an escaped name": {"a: {type: string}", "b: {type: string}", "{move: {from: .a, to: .b}}", `"\u0061":"1"`, widget("v2", `"b":"1"`)},
		"not an integer": {
			"a: {type: string}", "h: {type: string}, p: {type: integer}", `{format: {from: .a, template: "{h}:{p}", to: {h: .h, p: .p}}}`,
			`"a":"x:007"`, annotated("v2", `v1 {"/a":"x:007"}`, ""),
		},
		"the largest integer": {
			"a: {type: string}", "h: {type: string}, p: {type: integer}", `{format: {from: .a, template: "{h}:{p}", to: {h: .h, p: .p}}}`,
			`"a":"x:9223372036854775807"`, widget("v2", `"h":"x","p":9223372036854775807`),
		},
		"beyond the largest integer": {
			"a: {type: string}", "h: {type: string}, p: {type: integer}", `{format: {from: .a, template: "{h}:{p}", to: {h: .h, p: .p}}}`,
			`"a":"x:9223372036854775808"`, annotated("v2", `v1 {"/a":"x:9223372036854775808"}`, ""),
		},
		"into an object that is not there": {
			"a: {type: string}, o: {type: object, properties: {x: {type: string}}}", "o: {type: object, properties: {x: {type: string}, b: {type: string}}}",
			"{move: {from: .a, to: .o.b}}", `"a":"1"`, widget("v2", `"o":{"b":"1"}`),
		},
		"into an object that is empty": {
			"a: {type: string}, o: {type: object, properties: {x: {type: string}}}", "o: {type: object, properties: {x: {type: string}, b: {type: string}}}",
			"{move: {from: .a, to: .o.b}}", `"a":"1","o":{}`, annotated("v2", `v1 {"/o":{}}`, `"o":{"b":"1"}`),
		},
		"into a null": {
			"a: {type: string}, o: {type: object, nullable: true, properties: {x: {type: string}}}", "o: {type: object, nullable: true, properties: {x: {type: string}, b: {type: string}}}",
			"{move: {from: .a, to: .o.b}}", `"a":"1","o":null`, annotated("v2", `v1 {"/o":null}`, `"o":{"b":"1"}`),
		},
		"an empty shell": {
			"s: {type: object, properties: {a: {type: string}}}", "b: {type: string}", "{move: {from: .s.a, to: .b}}", `"s":{}`, annotated("v2", `v1 {"/s":{}}`, ""),
		},
		"a shell": {
			"s: {type: object, properties: {a: {type: string}, z: {type: string}}}", "b: {type: string}", "{move: {from: .s.a, to: .b}}",
			`"s":{"a":"1","z":"2"}`, annotated("v2", `v1 {"/s/z":"2"}`, `"b":"1"`),
		},
		"keys that a rule swaps": {
			"l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [id], items: {type: object, properties: {id: {type: string}, t: {type: string}, s: {type: string}}}}",
			"l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [id], items: {type: object, properties: {id: {type: string}, t: {type: string}}}}",
			`{move: {from: ".l[*].id", to: ".l[*].t"}}, {move: {from: ".l[*].t", to: ".l[*].id"}}`,
			`"l":[{"id":"a","t":"b","s":"1"}]`, annotated("v2", `v1 {"/l/0":{"id":"a","t":"b","s":"1"},"@/l/0":`+digest(`{"id":"b","t":"a"}`)+`}`, `"l":[{"t":"a","id":"b"}]`),
		},
		"one key of a map": {
			"m: {type: object, additionalProperties: {type: string}}", "m: {type: object, additionalProperties: {type: string}}, c: {type: string}", `{move: {from: '.m["c"]', to: .c}}`,
			`"m":{"c":"1","d":"2"}`, widget("v2", `"m":{"d":"2"},"c":"1"`),
		},
		"one key of a map that only one side has": {
			"m: {type: object, additionalProperties: {type: string}}", "c: {type: string}", `{move: {from: '.m["c"]', to: .c}}`,
			`"m":{"c":"1","d":"2"}`, annotated("v2", `v1 {"/m/d":"2"}`, `"c":"1"`),
		},
		"a list that is a scalar": {
			"l: {type: array, items: {type: object, properties: {x: {type: string}}}}", "l: {type: array, items: {type: object, properties: {z: {type: string}}}}", `{move: {from: ".l[*].x", to: ".l[*].z"}}`,
			`"l":"text"`, widget("v2", `"l":"text"`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := converterOf(t, between(t, test.v1, test.v2, test.rules))
			object := widget("v1", test.object)
			wantRoundTrip(t, c, "v1", object, test.want, object)
		})
	}
}

// TestConvertRefuses checks what is said of objects that are refused, and the cause that is counted, even if the error
// is wrapped.
func TestConvertRefuses(t *testing.T) {
	c := converterOf(t, between(t, "a: {type: string}, own: {type: string}", "b: {type: string}", "{move: {from: .a, to: .b}}"))
	for name, test := range map[string]struct {
		object, to, says string
		cause            conversion.Cause
	}{
		"no JSON":          {`{"a":1,}`, "v2", "invalid JSON at byte 7", conversion.CauseInvalidJSON},
		"cut off":          {`{"apiVersion":`, "v2", "invalid JSON", conversion.CauseInvalidJSON},
		"a name twice":     {widget("v1", `"a":"1","\u0061":"2"`), "v2", `the name "a" is there twice`, conversion.CauseInvalidJSON},
		"nested too deep":  {widget("v1", `"z":`+nested("[", "]", tree.MaxDepth)), "v2", "nested deeper than 10000", conversion.CauseInvalidJSON},
		"nested for ever":  {widget("v1", `"z":`+nested("[", "]", 2<<20)), "v2", "nested deeper than 10000", conversion.CauseInvalidJSON},
		"no object":        {`[]`, "v2", "a Widget object was expected", conversion.CauseWrongKind},
		"metadata a list":  {`{"apiVersion":"example.com/v1","kind":"Widget","metadata":[1]}`, "v2", "its metadata is not an object", conversion.CauseOther},
		"metadata a text":  {`{"metadata":"x","apiVersion":"example.com/v1","kind":"Widget"}`, "v1", "its metadata is not an object", conversion.CauseOther},
		"another kind":     {`{"apiVersion":"example.com/v1","kind":"Gadget"}`, "v2", `the object is "Gadget" of "example.com/v1"`, conversion.CauseWrongKind},
		"another group":    {`{"apiVersion":"other.com/v1","kind":"Widget"}`, "v2", "is for Widget of example.com", conversion.CauseWrongKind},
		"from a version":   {widget("v7", ""), "v2", `version "v7" is not in the ruleset of widgets.example.com`, conversion.CauseUnknownVersion},
		"to a version":     {widget("v1", ""), "v8", `version "v8" is not in the ruleset of widgets.example.com`, conversion.CauseUnknownVersion},
		"annotations full": {annotated("v1", "v9 "+strings.Repeat("x", 262000), `"own":"`+strings.Repeat("x", 1000)+`"`), "v2", "truncate the object's annotations", conversion.CauseAnnotationsTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.Convert([]byte("before"), []byte(test.object), test.to)
			expect.Contains(t, "error", fmt.Sprint(err), test.says)
			expect.Equal(t, "destination", "before", string(got))
			expect.Equal(t, fmt.Sprintf("cause of %q", err), test.cause, conversion.CauseOf(fmt.Errorf("wrapped: %w", err)))
		})
	}
	convert(t, c, widget("v1", `"z":`+nested("[", "]", tree.MaxDepth-1)), "v2") // as deep as encoding/json reads
	expect.Equal(t, "cause of any error, whose text must not be read", conversion.CauseOther, conversion.CauseOf(errors.New("UnknownVersion: invalid JSON")))
}

// TestCanary converts canary objects between all versions and back.
func TestCanary(t *testing.T) {
	crd, rules := richWorld(t)
	w := worldOf(t, crd, rules)
	for _, pair := range w.ruleset.Pairs() {
		w.roundTrip(t, string(w.converter.Canary(pair[0], pair[1])), pair[0], pair[1])
	}
}

// TestKeyedElements has elements whose keys are anywhere in them, and elements with equal or
// missing keys.
func TestKeyedElements(t *testing.T) {
	const list = "l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, properties: {name: {type: string}"
	c := converterOf(t, between(t, list+", note: {type: string}}}}", list+"}}}", ""))
	roundTrips{
		"the key behind": {"v1", `"l":[{"note":"1","name":"a"},{"note":"2","name":"b"}]`, named("v2", `v1 {"/l/[name=\"a\"]/note":"1","/l/[name=\"b\"]/note":"2"}`, `"l":[{"name":"a"},{"name":"b"}]`)},
		"a key twice":    {"v1", `"l":[{"name":"a","note":"1"},{"name":"a","note":"2"}]`, named("v2", `v1 {"/l/0":{"name":"a","note":"1"},"/l/1":{"name":"a","note":"2"},"@/l/0":`+digest(`{"name":"a"}`)+`,"@/l/1":`+digest(`{"name":"a"}`)+`}`, `"l":[{"name":"a"},{"name":"a"}]`)},
		"no key":         {"v1", `"l":[{"note":"1"},{}]`, named("v2", `v1 {"/l/0":{"note":"1"},"@/l/0":`+digest(`{}`)+`}`, `"l":[{},{}]`)},
		"null":           {"v1", `"l":[null,{"name":"a","note":"1"}]`, named("v2", `v1 {"/l/1":{"name":"a","note":"1"},"@/l/1":`+digest(`{"name":"a"}`)+`}`, `"l":[null,{"name":"a"}]`)},
	}.check(t, c)
}

// TestNulls has nulls that only one version allows, and nulls that server-side apply leaves in the
// place of emptied objects.
func TestNulls(t *testing.T) {
	c := converterOf(t, between(t,
		"a: {type: string, nullable: true}, m: {type: string, nullable: true}, o: {type: object, properties: {x: {type: string}, tier: {type: string}}}, l: {type: array, items: {type: object, properties: {x: {type: string, nullable: true}}}}",
		"a: {type: string}, mm: {type: string}, o: {type: object, properties: {x: {type: string}}}, l: {type: array, items: {type: object, properties: {x: {type: string}}}}",
		"{move: {from: .m, to: .mm}}"))
	roundTrips{
		"a field":     {"v1", `"a":null`, named("v2", `v1 {"/a":null}`, ``)},
		"a value":     {"v1", `"a":"1","m":"2"`, named("v2", "", `"a":"1","mm":"2"`)},
		"a move":      {"v1", `"m":null`, named("v2", `v1 {"/m":null}`, ``)},
		"in elements": {"v1", `"l":[{"x":null},{"x":"1"}]`, named("v2", `v1 {"/l/0":{"x":null},"@/l/0":`+digest(`{}`)+`}`, `"l":[{},{"x":"1"}]`)},
	}.check(t, c)
	t.Run("of no schema", func(t *testing.T) {
		both := strings.Replace(named("v2", `v2 {"/a":null,"/mm":null,"@/mm":["/m"]}`, ``), `"}}`, `","`+ofV1+`":"{\"format\":3,\"rules\":\"\",\"hidden\":{\"/m\":null}}"}}`, 1)
		misfitTest{roundTripTest{"v2", `"a":null,"mm":null`, named("v1", `v2 {"/a":null,"/mm":null,"@/mm":["/m"]}`, `"m":null`)}, both}.check(t, c)
	})
	toSpoke{
		"an edit wins":                {named("v2", `v1 {"/a":null}`, `"a":"1"`), named("v1", "", `"a":"1"`)},
		"an object that was emptied":  {named("v2", `v1 {"/o/tier":"gold"}`, `"o":null`), named("v1", `v2 {"/o":null}`, `"o":{"tier":"gold"}`)},
		"nothing comes back into one": {named("v2", "", `"o":null`), named("v1", "", `"o":null`)},
	}.check(t, c)
}

// TestAnswer checks that the metadata which the API server restores is left out, and that reading
// stops at the end of the object.
func TestAnswer(t *testing.T) {
	c := converterOf(t, between(t, "a: {type: string}", "b: {type: string}", "{move: {from: .a, to: .b}}"))
	const object = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"generation":1,"name":"w","namespace":"n","uid":"u","labels":{"l":"1"},"annotations":{"a":"1"},"managedFields":[{}]},"a":"1"}`
	out, outcome, err := c.Answer([]byte("["), []byte(object+" ,{]"), "v2", nil)
	expect.NoError(t, err)
	want := `[{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"name":"w","namespace":"n","uid":"u","labels":{"l":"1"},"annotations":{"a":"1"}},"b":"1"}`
	expect.Equal(t, "answer", want, string(out))
	expect.Equal(t, "outcome", conversion.Outcome{Read: len(object), From: "v1"}, outcome)
}
