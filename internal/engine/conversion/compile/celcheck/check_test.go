// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package celcheck

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiserver/pkg/cel/common"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/expression"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/internal/kindtest"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape/strip"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// structural reads the YAML of a schema.
func structural(t testing.TB, text string) *schema.Structural {
	t.Helper()
	return kindtest.Structural(t, schemaOf(t, text))
}

// podSchema returns a schema in the form of a converter pod.
func podSchema(t testing.TB, props *apiextensionsv1.JSONSchemaProps) common.Schema {
	t.Helper()
	stripped, err := strip.Of(props)
	expect.NoError(t, err)
	s, err := shape.Read(stripped)
	expect.NoError(t, err)
	return expression.TypesOf(s)
}

// schemaOf reads the YAML of a schema.
func schemaOf(t testing.TB, text string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	return kindtest.From[apiextensionsv1.JSONSchemaProps](t, text)
}

const (
	integer = `{type: integer}`
	double  = `{type: number}`
	boolean = `{type: boolean}`
	text    = `{type: string, maxLength: 64}`
	texts   = `{type: array, maxItems: 16, items: {type: string, maxLength: 64}}`
	textMap = `{type: object, maxProperties: 16, additionalProperties: {type: string, maxLength: 64}}`
	open    = `{x-kubernetes-preserve-unknown-fields: true}`
	either  = `{x-kubernetes-int-or-string: true, maxLength: 64}`
	port    = `{type: object, properties: {name: {type: string}, port: {type: integer}, tags: {type: array, items: {type: string}}}}`
)

// problems returns the problem of one expression over the fields a, b, c, for a field x.
func problems(t *testing.T, source, to string, elements uint64, from ...string) string {
	t.Helper()
	var fields []Field
	for i, text := range from {
		fields = append(fields, Field{Name: string(rune('a' + i)), Schema: structural(t, text)})
	}
	for _, problem := range Check(fields, []Field{{Name: "x", Schema: structural(t, to), Expression: source}}, elements) {
		return problem.Err.Error()
	}
	return ""
}

func TestCheck(t *testing.T) {
	const date, bytes, unboundedText = `{type: string, format: date-time}`, `{type: string, format: byte}`, `{type: string}`
	const object = `{type: object, x-kubernetes-preserve-unknown-fields: true}`
	for name, tc := range map[string]struct {
		expression string
		from, to   string
		elements   uint64
		want       string
	}{
		"fine":               {"self.a", integer, integer, 1, ""},
		"no expression":      {"self.", integer, integer, 1, "Syntax error: no viable alternative at input '.' (line 1, column 6)"},
		"unknown field":      {"self.b + 1", integer, integer, 1, "undefined field 'b' (line 1, column 5); self has a"},
		"unknown variable":   {"a + 1", integer, integer, 1, "undeclared reference to 'a' (in container '') (line 1, column 1)"},
		"no function":        {"now()", integer, date, 1, "undeclared reference to 'now' (in container '') (line 1, column 4)"},
		"no object before":   {"oldSelf.a", integer, integer, 1, "undeclared reference to 'oldSelf' (in container '') (line 1, column 1)"},
		"zone":               {"self.a.getHours('Europe/Berlin')", date, integer, 1, "reads a time zone, and which zones there are depends on the machine: add or subtract a duration instead"},
		"format":             {"'%s and %d'.format([self.a, 1])", text, text, 1, ""},
		"computed format":    {"self.a.format([1.5])", text, text, 1, "fills a text that is computed, which may ask for any number of digits: write the text before .format() in quotes"},
		"mixed map":          {"{'a': self.a, 'b': 'c'}", integer, open, 1, ""},
		"mixed optional map": {"{?'a': self.?a.optMap(x, dyn(x)), ?'b': optional.of('c').optMap(x, dyn(x))}", integer, open, 1, ""},

		"anything":                             {"self.a", open, open, 1, ""},
		"object without a schema":              {"self.a", object, object, 1, ""},
		"part of anything":                     {"self.a.b", open, text, 1, "gives dyn, and the field is of type string: convert it with string()"},
		"part of anything, to be checked":      {"dyn(self.a.b)", open, text, 1, ""},
		"part of anything, converted":          {"has(self.a.b) ? string(self.a.b) : ''", open, text, 1, ""},
		"elements of an object without one":    {"self.a.b.all(x, x.c == 'd')", object, boolean, 1, ""},
		"elements without a schema":            {"self.a.filter(x, has(x.b))", `{type: array, items: ` + object + `}`, `{type: array, items: ` + object + `}`, 1, ""},
		"embedded object":                      {"dyn(self.a.spec.host)", `{type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}`, text, 1, ""},
		"another field of an object with some": {"self.a.b", `{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {c: {type: string}}}`, text, 1, "undefined field 'b' (line 1, column 7); self has a"},

		"string for an integer":      {"self.a", text, integer, 1, "gives string, and the field is of type integer: convert it with int()"},
		"integer for a string":       {"self.a", integer, text, 1, "gives int, and the field is of type string: convert it with string()"},
		"double for an integer":      {"self.a", double, integer, 1, "gives double, and the field is of type integer: convert it with int()"},
		"integer for a number":       {"self.a", integer, double, 1, ""},
		"unsigned":                   {"uint(self.a)", integer, integer, 1, "gives uint, and the field is of type integer: convert it with int()"},
		"integer or string":          {"self.a", either, either, 1, ""},
		"integer or string, unclear": {"self.a", either, text, 1, "gives dyn, and the field is of type string: convert it with string()"},
		"integer for one or string":  {"self.a", integer, either, 1, ""},
		"optional":                   {"self.?a", integer, integer, 1, ""},
		"optional of another type":   {"self.?a", text, integer, 1, "gives string, and the field is of type integer: convert it with int()"},
		"quantity":                   {"quantity(self.a)", text, open, 1, "gives kubernetes.Quantity, and the field is of type anything"},
		"type":                       {"type(self.a)", text, text, 1, "gives type(string), and the field is of type string: convert it with string()"},
		"time":                       {"self.a", date, date, 1, ""},
		"time for a string":          {"self.a", date, text, 1, "gives google.protobuf.Timestamp, and the field is of type string: convert it with string()"},
		"string for a time":          {"self.a", text, date, 1, ""},
		"bytes":                      {"self.a", bytes, bytes, 1, ""},
		"bytes for a duration":       {"self.a", bytes, `{type: string, format: duration}`, 1, "gives bytes, and the field is of type string of format duration: convert it with string()"},

		"null":                        {"null", texts, texts, 1, ""},
		"none":                        {"optional.none()", texts, texts, 1, ""},
		"perhaps":                     {"size(self.a) > 1 ? optional.of(self.a) : optional.none()", texts, texts, 1, ""},
		"perhaps, of another type":    {"size(self.a) > 1 ? optional.of(self.a) : optional.none()", texts, text, 1, "gives list(string), and the field is of type string"},
		"perhaps another text":        {"self.?a.optMap(x, x + 'y')", text, text, 1, ""},
		"perhaps, with null":          {"size(self.a) > 1 ? self.a : null", texts, texts, 1, ""},
		"perhaps, half of it":         {"size(self.a) > 1 ? self.a : optional.none()", texts, texts, 1, ""},
		"null or an object":           {"self.a.port > 1 ? self.a : null", port, port, 1, ""},
		"null or a map":               {"self.a.port > 1 ? null : self.a", port, textMap, 1, "gives self.a, and the field is of type map of string"},
		"null in a map":               {"{'a': null}", text, textMap, 1, ""},
		"null in a map for anything":  {"{'a': null}", text, open, 1, ""},
		"null where null may be":      {"{'a': null}", text, `{type: object, additionalProperties: {type: string, nullable: true}}`, 1, ""},
		"choice of two types":         {"self.a.port > 1 ? self.a : {'name': 'x'}", port, port, 1, ""},
		"choice by another type":      {"self.a ? 1 : 2", integer, integer, 1, "found no matching overload for '_?_:_' applied to '(int, dyn, dyn)' (line 1, column 8)"},
		"choice of two as dyn":        {"self.a.port > 1 ? dyn(self.a) : dyn({'name': 'x'})", port, port, 1, ""},
		"choice of one as dyn":        {"self.a.port > 1 ? dyn(self.a) : {'name': 'x'}", port, port, 1, ""},
		"choice of dyn, one wrong":    {"self.a.port > 1 ? dyn(self.a) : dyn(1.5)", port, port, 1, "gives double, and the field is of type object"},
		"choice of dyn and none":      {"self.a.port > 1 ? optional.of(dyn(self.a)) : optional.none()", port, port, 1, ""},
		"choice in another, as dyn":   {"self.?a.optMap(x, x.port > 1 ? dyn(x) : dyn('x'))", port, port, 1, "gives string, and the field is of type object"},
		"dyn":                         {"dyn(self.a)", integer, integer, 1, ""},
		"dyn of another type":         {"dyn(self.a)", text, integer, 1, "gives string, and the field is of type integer: convert it with int()"},
		"dyn of what has no type":     {"dyn(self.a)", either, integer, 1, ""},
		"dyn for anything":            {"dyn(self.a)", integer, open, 1, ""},
		"no type, and no one said so": {"[dyn(self.a)][0]", port, port, 1, "gives dyn, and the field is of type object: put it in dyn() to have it checked each time"},

		"list":                          {"self.a", texts, texts, 1, ""},
		"list of another type":          {"self.a", texts, `{type: array, items: {type: integer}}`, 1, "gives list(string), and the field is of type array of integer"},
		"list for a string":             {"self.a", texts, text, 1, "gives list(string), and the field is of type string"},
		"list for anything":             {"self.a", texts, open, 1, ""},
		"map":                           {"self.a", textMap, textMap, 1, ""},
		"map of another type":           {"self.a", textMap, `{type: object, additionalProperties: {type: integer}}`, 1, "gives map(string, string), and the field is of type map of integer"},
		"map with other keys":           {"{1: self.a}", text, textMap, 1, "gives a map with keys of type int, and the field is of type map of string"},
		"map for an object":             {"self.a", textMap, port, 1, ""},
		"map for an object without any": {"{'a': 1.5}", text, port, 1, "gives an object with a member a, and the field is of type object: that has name, port, tags"},
		"mixed map for an object":       {"{'name': dyn(self.a), 'port': dyn(1)}", text, port, 1, ""},
		"empty object":                  {"self.a ? optional.of({}) : optional.none()", `{type: boolean}`, `{type: object}`, 1, ""},
		"object":                        {"self.a", port, port, 1, ""},
		"object with more":              {"self.a", port, `{type: object, properties: {name: {type: string}}}`, 1, ""},
		"object with nothing in common": {"self.a", port, `{type: object, properties: {host: {type: string}}}`, 1, "gives self.a, and the field is of type object"},
		"members of several types":      {"{'name': self.a, 'port': 1, 'tags': [self.a]}", text, port, 1, ""},
		"member of another type":        {"{'name': self.a, 'port': self.a}", text, port, 1, "gives string, and the field is of type integer: convert it with int()"},
		"member in a list":              {"[{'name': self.a}, {'port': self.a}]", text, `{type: array, items: ` + port + `}`, 1, "gives string, and the field is of type integer: convert it with int()"},
		"member in a choice":            {"self.a == '' ? null : {'port': self.a}", text, port, 1, "gives string, and the field is of type integer: convert it with int()"},
		"member that is not there":      {"{'name': self.a, 'host': self.a}", text, port, 1, "gives an object with a member host, and the field is of type object: that has name, port, tags"},
		"member with a computed name":   {"{self.a: self.a}", text, port, 1, ""},
		"optional member":               {"{'name': self.?a, ?'port': optional.of(1)}", text, port, 1, ""},
		"optional member that is null":  {"{?'name': self.a == '' ? null : self.?a}", text, port, 1, "expected type 'optional_type(null)' but found 'null' (line 1, column 24)"},
		"choice in an argument":         {"string(self.a == '' ? 1 : 'x')", text, text, 1, "found no matching overload for '_?_:_' applied to '(bool, int, string)' (line 1, column 21): what is not the result has one type: put both in dyn()"},
		"optional of a wrong type":      {"{'port': self.?a}", text, port, 1, "gives string, and the field is of type integer: convert it with int()"},
		"choice in a member":            {"{'port': self.a == '' ? null : 1}", text, port, 1, ""},
		"choice in a loop":              {"self.a.map(x, x.port > 1 ? x : {'name': 'x'})", `{type: array, items: ` + port + `}`, `{type: array, items: ` + port + `}`, 1, ""},
		"choice in a loop over a map":   {"self.a.transformMap(k, v, k == '' ? 1 : v)", textMap, `{type: object, additionalProperties: {x-kubernetes-int-or-string: true}}`, 1, ""},
		"optional in a loop":            {"self.a.map(x, {'name': x.?name})", `{type: array, items: ` + port + `}`, `{type: array, items: ` + port + `}`, 1, ""},
		"lists of several types":        {"self.a + (size(self.a) > 1 ? [{'name': 'x'}] : [])", `{type: array, items: ` + port + `}`, `{type: array, items: ` + port + `}`, 1, ""},
		"lists, one wrong":              {"self.a + [{'name': 1}]", `{type: array, items: ` + port + `}`, `{type: array, items: ` + port + `}`, 1, "gives int, and the field is of type string: convert it with string()"},
		"object with other types":       {"self.a", port, `{type: object, properties: {name: {type: string}, port: {type: string}, tags: {type: array, items: {type: string}}}}`, 1, "gives self.a, and the field is of type object"},
		"object for a map":              {"self.a", `{type: object, properties: {b: {type: string}}}`, textMap, 1, ""},
		"object for anything":           {"self.a", port, open, 1, ""},
		"objects in a list":             {"self.a", `{type: array, items: ` + port + `}`, `{type: array, items: ` + port + `}`, 1, ""},

		"text without a bound":      {"self.a + 'x'", unboundedText, text, 1, ""},
		"optional without a bound":  {"self.?a.orValue('').split(',').map(x, x + 'y').join(',')", unboundedText, text, 1, ""},
		"optional with a bound":     {"self.?a.orValue('').split(',').map(x, x + 'y').join(',')", text, text, 1, ""},
		"loops without a bound":     {"self.a.all(x, self.a.exists(y, x == y))", `{type: array, items: {type: string}}`, boolean, 1, "may cost 951043, and gives no value if it costs more than 100000: make the expression simpler, or limit what it reads by maxLength, maxItems and maxProperties in the schema"},
		"loops with a bound":        {"self.a.all(x, self.a.exists(y, x == y))", texts, boolean, 1, ""},
		"loops over objects":        {"self.a.all(x, self.a.exists(y, x.b == y.b))", `{type: array, maxItems: 99, items: {type: object, properties: {b: {type: string}, c: {type: string}}}}`, boolean, 1, "may cost 588657, and gives no value if it costs more than 100000: make the expression simpler, or limit what it reads by maxLength, maxItems and maxProperties in the schema"},
		"loops in loops":            {"self.a.all(x, self.a.all(y, self.a.exists(z, x.c == y.c)))", `{type: array, maxItems: 99, items: {type: object, properties: {b: {type: string}, c: {type: integer}}}}`, boolean, 1, "may cost 8792094, and gives no value if it costs more than 100000: make the expression simpler, or limit what it reads by maxLength, maxItems and maxProperties in the schema"},
		"in a few elements":         {"self.a.all(x, self.a.exists(y, x == y))", texts, boolean, 16, ""},
		"in many elements":          {"self.a.all(x, self.a.exists(y, x == y))", texts, boolean, 1000, "may cost 8291 for each of up to 1000 elements, and an object cannot be converted if its expressions cost more than 5000000: make the expression simpler, or limit what it reads by maxLength, maxItems and maxProperties in the schema"},
		"cheap in many elements":    {"self.a + 1", integer, integer, 256, ""},
		"one text in many elements": {"self.a + ':'", unboundedText, text, 256, ""},
		"split in many elements":    {"self.a.split(':')", unboundedText, texts, 256, ""},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, tc.expression+" for "+tc.to, tc.want, problems(t, tc.expression, tc.to, tc.elements, tc.from))
		})
	}
}

func TestCheckBothDirections(t *testing.T) {
	from := []Field{{Name: "packed", Schema: structural(t, integer), Expression: "self.high * 65536 + self.lo"}}
	to := []Field{
		{Name: "high", Schema: structural(t, integer), Expression: "self.packed / 65536"},
		{Name: "low", Schema: structural(t, integer), Expression: "string(self.packed % 65536)"},
		{Name: "all", Schema: structural(t, texts), Expression: "self.packed > 0 ? ['a'] : []"},
	}
	expect.Equal(t, "problems", []Problem{{Name: "low", Err: &TypeError{Result: "string", Field: "integer", Hint: "convert it with int()"}}}, Check(from, to, 1))
	want := []Problem{
		{Name: "packed", Err: &expression.CompileError{
			Messages: []string{"undefined field 'lo' (line 1, column 25)"}, Fields: []string{"all", "high", "low"}}},
	}
	expect.Equal(t, "problems of the other side", want, Check(to, from, 1))
}

func TestName(t *testing.T) {
	for name, want := range map[string]string{
		"packed": "", "_x9": "", "namespace": "", "a__b": "",
		"":     "expressions call the field self.name: write the name with letters, digits and _, and no digit first",
		"9x":   "expressions call the field self.name: write the name with letters, digits and _, and no digit first",
		"a-b":  "expressions call the field self.name: write the name with letters, digits and _, and no digit first",
		"in":   "true, false, null and in are no names in expressions, and without quotes YAML reads y, n, yes, no, on and off as one of them: choose another name",
		"null": "true, false, null and in are no names in expressions, and without quotes YAML reads y, n, yes, no, on and off as one of them: choose another name",
	} {
		expect.Equal(t, "Name of "+name, want, Name(name))
	}
}

// Every name that Name accepts is one that an expression can read.
func TestNamesCanBeRead(t *testing.T) {
	for _, name := range []string{"as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop",
		"package", "namespace", "return", "var", "void", "while", "a__b", "__a", "self", "size", "type", "dyn", "int"} {
		from := []Field{{Name: name, Schema: structural(t, integer), Expression: "self.x"}}
		to := []Field{{Name: "x", Schema: structural(t, integer), Expression: "has(self." + name + ") ? self." + name + " : self.?" + name + ".orValue(0)"}}
		if found := append(Check(from, to, 1), Check(to, from, 1)...); Name(name) != "" || len(found) > 0 {
			t.Errorf("%s: %s %v", name, Name(name), found)
			continue
		}
		pod := func(field Field) []expression.Field {
			return []expression.Field{{Name: field.Name, Schema: podSchema(t, schemaOf(t, integer)), Expression: field.Expression}}
		}
		program, err := expression.New(pod(from[0]), pod(to[0]))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		a := new(tree.Arena)
		got := program.Evaluate(a, expression.Input{Values: []*tree.Node{a.NewScalar([]byte("7"))}}, new(expression.Budget))
		expect.Equal(t, name, "7", string(got[0].JSON()))
	}
}

func TestElements(t *testing.T) {
	for text, want := range map[string]uint64{
		texts: 16, textMap: 16,
		`{type: array, items: {type: string}}`:                                      assumedItems,
		`{type: array, maxItems: 100000, items: {type: string}}`:                    assumedItems,
		`{type: object, maxProperties: 3, additionalProperties: {type: string}}`:    3,
		`{type: object, additionalProperties: {type: string}, description: a map.}`: assumedItems,
	} {
		expect.Equal(t, "elements of "+text, want, Elements(structural(t, text)))
	}
}
