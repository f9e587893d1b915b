// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/cel-go/cel"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiserver/pkg/cel/common"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape/strip"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// schemaOf reads the YAML of a schema.
func schemaOf(t testing.TB, text string) common.Schema {
	t.Helper()
	props := &apiextensionsv1.JSONSchemaProps{}
	expect.NoError(t, yaml.UnmarshalStrict([]byte(text), props))
	stripped, err := strip.Of(props)
	expect.NoError(t, err)
	s, err := shape.Read(stripped)
	expect.NoError(t, err)
	return TypesOf(s)
}

// evaluate computes a field with the schema to from fields that are named a, b and c in order. An
// empty text is a missing value.
func evaluate(t testing.TB, expression, to string, from, values []string) string {
	t.Helper()
	var fields []Field
	for i, text := range from {
		fields = append(fields, Field{Name: string(rune('a' + i)), Schema: schemaOf(t, text), Expression: "0"})
	}
	program, err := New(fields, []Field{{Name: "x", Schema: schemaOf(t, to), Expression: expression}})
	expect.NoError(t, err)
	return results(t, program, values...)[0]
}

// results returns what a program computes, as JSON. An empty text is a missing value.
func results(t testing.TB, program *Program, values ...string) []string {
	t.Helper()
	a, in := new(tree.Arena), Input{}
	for _, text := range values {
		in.Values = append(in.Values, nodeOf(t, a, text))
	}
	var texts []string
	for _, result := range program.Evaluate(a, in, new(Budget)) {
		texts = append(texts, "")
		if result != nil {
			texts[len(texts)-1] = string(a.Canonical(nil, result))
		}
	}
	return texts
}

// nodeOf returns the value of a text, nil if it is empty.
func nodeOf(t testing.TB, a *tree.Arena, text string) *tree.Node {
	t.Helper()
	if text == "" {
		return nil
	}
	n, err := a.Read([]byte(text))
	expect.NoError(t, err)
	return n
}

// scopeOf returns the scope of one field, and the variables with its value.
func scopeOf(t testing.TB, of common.Schema, value string) (*Scope, map[string]any) {
	t.Helper()
	scope, err := NewScope(typesOf([]Field{{Name: "a", Schema: of}}), StoredExpressions)
	expect.NoError(t, err)
	return scope, map[string]any{Self: map[string]any{"a": readValue(nodeOf(t, new(tree.Arena), value), of)}}
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

func TestEvaluate(t *testing.T) {
	for name, tc := range map[string]struct {
		expression string
		from       []string
		values     []string
		to         string
		want       string
	}{
		"integer":                     {"self.a * 2", []string{integer}, []string{`21`}, integer, `42`},
		"integer over 2^53":           {"self.a", []string{integer}, []string{`9007199254740993`}, integer, `9007199254740993`},
		"smallest integer":            {"self.a", []string{integer}, []string{`-9223372036854775808`}, integer, `-9223372036854775808`},
		"integer over int64":          {"self.a", []string{integer}, []string{`9223372036854775808`}, integer, ``},
		"integer written as a double": {"self.a", []string{integer}, []string{`1.0`}, integer, ``},
		"overflow":                    {"self.a + 1", []string{integer}, []string{`9223372036854775807`}, integer, ``},
		"division by zero":            {"1 / self.a", []string{integer}, []string{`0`}, integer, ``},
		"integer as a number":         {"self.a", []string{integer}, []string{`3`}, double, `3`},
		"double":                      {"self.a / 4.0", []string{double}, []string{`1`}, double, `0.25`},
		"double in its shortest form": {"self.a", []string{double}, []string{`0.10000000000000000`}, double, `0.1`},
		"large double":                {"self.a", []string{double}, []string{`1e300`}, double, `1e+300`},
		"double beyond all":           {"self.a", []string{double}, []string{`1e400`}, double, ``},
		"inexact integer as a double": {"self.a", []string{double}, []string{`9007199254740993`}, double, ``},
		"infinity":                    {"self.a / 0.0", []string{double}, []string{`1`}, double, ``},
		"not a number":                {"self.a / self.a", []string{double}, []string{`0`}, double, ``},
		"boolean":                     {"!self.a", []string{boolean}, []string{`true`}, boolean, `false`},
		"string":                      {"self.a + '!'", []string{text}, []string{`"a"`}, text, `"a!"`},
		"string as it is":             {"self.a", []string{text}, []string{`"\u003ca\u003e & \"\\ \n é"`}, text, `"<a> & \"\\ \n é"`},
		"string of another type":      {"self.a", []string{text}, []string{`1`}, text, ``},
		"failed conversion":           {"int(self.a)", []string{text}, []string{`"7x"`}, integer, ``},
		"converted":                   {"int(self.a)", []string{text}, []string{`"7"`}, integer, `7`},

		"split":    {"self.a.split(':')", []string{text}, []string{`"a:b"`}, texts, `["a","b"]`},
		"join":     {"self.a.join(':')", []string{texts}, []string{`["a","b"]`}, text, `"a:b"`},
		"list":     {"self.a", []string{texts}, []string{`["b","a"]`}, texts, `["b","a"]`},
		"no list":  {"self.a.map(x, x)", []string{texts}, []string{`[]`}, texts, `[]`},
		"sum list": {"self.a + ['c']", []string{texts}, []string{`["a"]`}, texts, `["a","c"]`},
		"lists of lists": {"[self.a] + [self.a]", []string{texts}, []string{`["a"]`},
			`{type: array, items: ` + texts + `}`, `[["a"],["a"]]`},
		"null in a list":       {"self.a", []string{texts}, []string{`["a",null]`}, texts, ``},
		"map":                  {"self.a", []string{textMap}, []string{`{"b":"1","a":"2"}`}, textMap, `{"a":"2","b":"1"}`},
		"keys of a map":        {"self.a.map(k, k)", []string{textMap}, []string{`{"c":"","b":"","a":"","d":""}`}, texts, `["a","b","c","d"]`},
		"entries of a map":     {"self.a.transformList(k, v, k + v)", []string{textMap}, []string{`{"c":"1","b":"2","a":"3"}`}, texts, `["a3","b2","c1"]`},
		"keys of a literal":    {"{'d': 1, 'b': 2, 'c': 3, 'a': 4, self.a: 5}.map(k, k)", []string{text}, []string{`"e"`}, texts, `["a","b","c","d","e"]`},
		"keys of integers":     {"{10: 1, 9: 2, 8: 3, self.a: 5}.map(k, string(k))", []string{integer}, []string{`7`}, texts, `["7","8","9","10"]`},
		"transformed map":      {"self.a.transformMap(k, v, v + k)", []string{textMap}, []string{`{"b":"1","a":"2"}`}, textMap, `{"a":"2a","b":"1b"}`},
		"map of other keys":    {"{1: self.a}", []string{text}, []string{`"a"`}, open, ``},
		"map with an optional": {"{'a': self.a, ?'b': self.?b}", []string{text, text}, []string{`"a"`, ``}, textMap, `{"a":"a"}`},

		"object":                 {"self.a", []string{port}, []string{`{"port":1,"name":"a"}`}, port, `{"name":"a","port":1}`},
		"member of an object":    {"self.a.port", []string{port}, []string{`{"port":1}`}, integer, `1`},
		"missing member":         {"self.a.port", []string{port}, []string{`{"name":"a"}`}, integer, ``},
		"null member":            {"has(self.a.port) ? 1 : 0", []string{port}, []string{`{"port":null}`}, integer, `0`},
		"member of another type": {"self.a.name", []string{port}, []string{`{"name":"a","port":"b"}`}, text, ``},
		"built object":           {"{'name': dyn(self.a), 'port': dyn(self.b)}", []string{text, integer}, []string{`"a"`, `1`}, port, `{"name":"a","port":1}`},
		"object with a member too many": {
			"{'name': self.a, 'host': self.a}", []string{text}, []string{`"a"`}, port, `{"name":"a"}`},
		"object of the source with a member too many": {"self.a", []string{port}, []string{`{"name":"a","port":1}`}, `{type: object, properties: {name: {type: string}}}`, `{"name":"a"}`},
		"object with members that are no value":       {"{'name': null, 'port': self.?b, 'tags': self.?a.optMap(x, [x])}", []string{text, integer}, []string{`"a"`, ``}, port, `{"tags":["a"]}`},
		"list with an element that is no value":       {"[self.?b]", []string{text, text}, []string{`"a"`, ``}, texts, ``},
		"object with a member of another type":        {"{'port': dyn(self.a)}", []string{text}, []string{`"a"`}, port, ``},
		"object with members that no schema names": {"self.a", []string{`{type: object, x-kubernetes-preserve-unknown-fields: true}`},
			[]string{`{"b":[1,{"c":null}],"a":1.5}`}, `{type: object, x-kubernetes-preserve-unknown-fields: true}`, `{"a":1.5,"b":[1,{"c":null}]}`},
		"object of which nothing may stay": {"self.a", []string{`{type: object, x-kubernetes-preserve-unknown-fields: true}`},
			[]string{`{"a":1}`}, port, `{}`},
		"integer over int64 in what no schema names": {"self.a", []string{`{type: object, x-kubernetes-preserve-unknown-fields: true}`},
			[]string{`{"a":{"b":[18446744073709551615]}}`}, `{type: object, x-kubernetes-preserve-unknown-fields: true}`, ``},
		"part of anything":                     {"self.a.b[0].c", []string{open}, []string{`{"b":[{"c":"d"}]}`}, text, `"d"`},
		"part of another type":                 {"self.a.b", []string{open}, []string{`{"b":7}`}, text, ``},
		"part that is missing":                 {"self.a.?b.c.orValue('x')", []string{open}, []string{`{}`}, text, `"x"`},
		"part of a null":                       {"has(self.a.b.c)", []string{open}, []string{`{"b":null}`}, boolean, `false`},
		"type of a part":                       {"type(self.a.b) == string ? 1 : 2", []string{open}, []string{`{"b":"c"}`}, integer, `1`},
		"keys of anything":                     {"self.a.map(k, k)", []string{open}, []string{`{"c":1,"b":2,"a":3,"d":4}`}, texts, `["a","b","c","d"]`},
		"elements of anything":                 {"self.a.filter(x, x > 1)", []string{open}, []string{`[1,2,3.5]`}, open, `[2,3.5]`},
		"members of a map of anything":         {"self.a['x'].b", []string{`{type: object, additionalProperties: ` + open + `}`}, []string{`{"x":{"b":"c"},"y":null}`}, text, `"c"`},
		"elements that are no objects":         {"self.a[0].b", []string{`{type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}`}, []string{`[{"b":"c"},1]`}, text, ``},
		"no object where one has to be":        {"self.a == 1", []string{`{type: object, x-kubernetes-preserve-unknown-fields: true}`}, []string{`1`}, boolean, ``},
		"part of an embedded object":           {"self.a.spec.b", []string{`{type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}`}, []string{`{"apiVersion":"v1","spec":{"b":"c"}}`}, text, `"c"`},
		"number of anything that is not exact": {"self.a.b > 1", []string{open}, []string{`{"b":18446744073709551615}`}, boolean, ``},
		"field named by a reserved word": {"self.a.namespace", []string{`{type: object, properties: {namespace: {type: string}}}`},
			[]string{`{"namespace":"a"}`}, text, `"a"`},
		"anything": {"{'a': [1, 2]}", []string{text}, []string{`"a"`}, open, `{"a":[1,2]}`},

		"missing":                    {"self.a", []string{text, text}, []string{``, `"b"`}, text, ``},
		"missing, asked":             {"has(self.a) ? self.a : self.b", []string{text, text}, []string{``, `"b"`}, text, `"b"`},
		"missing, optional":          {"self.?a", []string{text, text}, []string{``, `"b"`}, text, ``},
		"there, optional":            {"self.?a", []string{text}, []string{`"a"`}, text, `"a"`},
		"missing, otherwise":         {"self.?a.orValue(self.b)", []string{text, text}, []string{``, `"b"`}, text, `"b"`},
		"none":                       {"optional.none()", []string{text}, []string{`"a"`}, text, ``},
		"none for a list":            {"optional.none()", []string{text}, []string{`"a"`}, texts, ``},
		"null for a list":            {"null", []string{text}, []string{`"a"`}, texts, ``},
		"perhaps, not":               {"self.a == 'b' ? optional.of(self.a) : optional.none()", []string{text}, []string{`"a"`}, text, ``},
		"null or a text, not":        {"self.a == 'b' ? self.a : null", []string{text}, []string{`"a"`}, text, ``},
		"null or a text":             {"self.a == 'b' ? null : self.a", []string{text}, []string{`"a"`}, text, `"a"`},
		"three types":                {"self.a == 'b' ? 1 : self.a == 'c' ? self.?a : self.a", []string{text}, []string{`"c"`}, either, `"c"`},
		"choice in a loop":           {"self.a.map(x, has(x.port) ? x : {'name': 'x'})", []string{`{type: array, items: ` + port + `}`}, []string{`[{"port":1},{}]`}, `{type: array, items: ` + port + `}`, `[{"port":1},{"name":"x"}]`},
		"lists of several types":     {"self.a + [{'name': 'x'}]", []string{`{type: array, items: ` + port + `}`}, []string{`[{"port":1}]`}, `{type: array, items: ` + port + `}`, `[{"port":1},{"name":"x"}]`},
		"perhaps":                    {"self.a == 'a' ? optional.of(self.a) : optional.none()", []string{text}, []string{`"a"`}, text, `"a"`},
		"perhaps an object, not":     {"self.a.port > 1 ? self.a : null", []string{port}, []string{`{"port":1}`}, port, ``},
		"one of two, an object":      {"self.a.port > 1 ? dyn(self.a) : dyn({'name': 'x'})", []string{port}, []string{`{"port":2}`}, port, `{"port":2}`},
		"one of two, a map":          {"self.a.port > 1 ? dyn(self.a) : dyn({'name': 'x'})", []string{port}, []string{`{"port":1}`}, port, `{"name":"x"}`},
		"dyn that does not fit":      {"dyn(self.a)", []string{either}, []string{`"a"`}, integer, ``},
		"dyn that fits":              {"dyn(self.a)", []string{either}, []string{`7`}, integer, `7`},
		"null where null may be":     {"{'a': null}", []string{text}, []string{`"a"`}, `{type: object, additionalProperties: {type: string, nullable: true}}`, `{"a":null}`},
		"null result":                {"dyn(null)", []string{text}, []string{`"a"`}, open, ``},
		"nothing there":              {"'constant'", []string{text, text}, []string{``, `null`}, text, ``},
		"null is missing":            {"has(self.a) || self.b != 'b' ? 1 : 0", []string{`{type: string, nullable: true}`, text}, []string{`null`, `"b"`}, integer, `0`},
		"only a null is read":        {"has(self.a) ? 1 : 0", []string{`{type: string, nullable: true}`, text}, []string{`null`, `"b"`}, integer, ``},
		"only optionally read":       {"self.?a.orValue(0) + 1", []string{integer, text}, []string{``, `"b"`}, integer, ``},
		"a constant":                 {"1", []string{integer, text}, []string{``, `"b"`}, integer, `1`},
		"self as a whole":            {"has(self.a) || [self].all(x, has(x.a)) ? 1 : 0", []string{integer, text}, []string{``, `"b"`}, integer, `0`},
		"short circuit":              {"has(self.b) || self.a == 'x'", []string{text, text}, []string{``, `"b"`}, boolean, `true`},
		"unreadable but not read":    {"self.b", []string{text, text}, []string{`[]`, `"b"`}, text, `"b"`},
		"unreadable, asked for only": {"has(self.a) ? 1 : 0", []string{text, text}, []string{`[]`, `"b"`}, integer, `1`},

		"integer or string, an integer": {"type(self.a) == int ? string(self.a) : string(self.a) + '%'", []string{either}, []string{`5`}, text, `"5"`},
		"integer or string, a string":   {"self.a", []string{either}, []string{`"5%"`}, either, `"5%"`},
		"integer or string, a boolean":  {"dyn(true)", []string{text}, []string{`"a"`}, either, ``},
		"sets in another order": {"self.a == self.b", []string{
			`{type: array, x-kubernetes-list-type: set, items: {type: string}}`, `{type: array, x-kubernetes-list-type: set, items: {type: string}}`,
		}, []string{`["a","b"]`, `["b","a"]`}, boolean, `true`},

		"duration":             {"self.a", []string{`{type: string, format: duration}`}, []string{`"90m"`}, `{type: string, format: duration}`, `"1h30m0s"`},
		"seconds of one":       {"self.a.getSeconds()", []string{`{type: string, format: duration}`}, []string{`"90m"`}, integer, `5400`},
		"no duration":          {"self.a.getSeconds()", []string{`{type: string, format: duration}`}, []string{`"soon"`}, integer, ``},
		"time":                 {"self.a + duration('1h')", []string{`{type: string, format: date-time}`}, []string{`"2024-02-03T04:05:06+02:00"`}, `{type: string, format: date-time}`, `"2024-02-03T03:05:06Z"`},
		"date":                 {"self.a + duration('24h')", []string{`{type: string, format: date}`}, []string{`"2024-02-28"`}, `{type: string, format: date}`, `"2024-02-29"`},
		"bytes":                {"self.a", []string{`{type: string, format: byte}`}, []string{`"aGk="`}, `{type: string, format: byte}`, `"aGk="`},
		"bytes of a text":      {"bytes(self.a)", []string{text}, []string{`"hi"`}, `{type: string, format: byte}`, `"aGk="`},
		"quantity":             {"quantity(self.a).asInteger()", []string{text}, []string{`"2k"`}, integer, `2000`},
		"regular expression":   {"self.a.find('[0-9]+')", []string{text}, []string{`"abc 123"`}, text, `"123"`},
		"address":              {"ip(self.a).family()", []string{text}, []string{`"::1"`}, integer, `6`},
		"far too expensive":    {"self.a.all(x, self.a.all(y, self.a.all(z, x != y || y != z || true)))", []string{texts}, []string{longList}, boolean, ``},
		"endless result":       {"self.a.map(x, self.a.map(y, self.a.map(z, x + y + z)))", []string{texts}, []string{longList}, open, ``},
		"result of a wide map": {"self.a.map(x, {'a': x})", []string{texts}, []string{`["1"]`}, `{type: array, items: ` + textMap + `}`, `[{"a":"1"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, fmt.Sprintf("%s of %v", tc.expression, tc.values), tc.want, evaluate(t, tc.expression, tc.to, tc.from, tc.values))
		})
	}
}

// longList is one over which three nested loops take too long.
var longList = func() string {
	list := `["a"`
	for range 299 {
		list += `,"a"`
	}
	return list + `]`
}()

// A panic of the library is an error of the expression, which the author can correct.
func TestRecover(t *testing.T) {
	fail := func() (err error) {
		defer Recover(&err)
		panic("a defect")
	}
	expect.Equal(t, "error", "the library for expressions fails at it (a defect): write it in another way", fmt.Sprint(fail()))
}

// TestEvaluateTooMuch has expressions that would need gigabytes or minutes before their cost is
// charged.
func TestEvaluateTooMuch(t *testing.T) {
	long := `"` + strings.Repeat("a", 200_000) + `"`
	numbers := "[0"
	for i := range 5000 {
		numbers += "," + strconv.Itoa(i)
	}
	numbers += "]"
	const list = `{type: array, items: {type: integer}}`
	for expression, tc := range map[string]struct{ of, value, want string }{
		"self.a.replace('a', self.a)":                             {text, long, "replace would do too much"},
		"self.a.replace('a', self.a, 100000)":                     {text, long, "replace would do too much"},
		"self.a.split('').join(self.a)":                           {text, long, "join would do too much"},
		"self.a.substring(0, 99).split('').map(x, self.a).join()": {text, long, "join would do too much"},
		"self.a.distinct()":                                       {list, numbers, "distinct would do too much"},
		"sets.contains(self.a, self.a)":                           {list, numbers, "sets.contains would do too much"},
		"sets.equivalent(self.a, self.a)":                         {list, numbers, "sets.equivalent would do too much"},
		"sets.intersects(self.a, self.a)":                         {list, numbers, "sets.intersects would do too much"},
		"lists.range(self.a[4999] * 10000000)":                    {list, numbers, "exceeds maximum allowed"},
	} {
		scope, self := scopeOf(t, schemaOf(t, tc.of), tc.value)
		compiled, err := scope.Compile(expression)
		expect.NoError(t, err)
		program, err := scope.Env.Program(compiled, cel.CostLimit(1<<60)) // so that only the guards are in the way
		expect.NoError(t, err)
		_, _, err = program.Eval(self)
		expect.Contains(t, expression+": error", fmt.Sprint(err), tc.want)
	}
	for expression, want := range map[string]string{
		"self.a.replace('a', 'bb')": `"bbc"`, "self.a.replace('a', 'b', 1)": `"bc"`, "self.a.split('').join('-')": `"a-c"`, "self.a.split('').join()": `"ac"`,
		"[self.a, self.a].distinct().join()": `"ac"`, "string(sets.contains([self.a], [self.a]))": `"true"`,
	} {
		expect.Equal(t, expression, want, evaluate(t, expression, text, []string{text}, []string{`"ac"`}))
	}
}

// TestEvaluateAtOnce computes three fields, one of them hardly ever, in several goroutines.
func TestEvaluateAtOnce(t *testing.T) {
	program, err := New([]Field{{Name: "packed", Schema: schemaOf(t, integer)}}, []Field{
		{Name: "high", Schema: schemaOf(t, integer), Expression: "self.packed / 65536"},
		{Name: "low", Schema: schemaOf(t, integer), Expression: "self.packed % 65536"},
		{Name: "never", Schema: schemaOf(t, text), Expression: "self.packed > 0 ? string(1 / 0) : ''"},
	})
	expect.NoError(t, err)
	var running sync.WaitGroup
	for worker := range 8 {
		running.Go(func() {
			for i := range 200 {
				packed := worker*65536*1000 + i
				want := []string{strconv.Itoa(packed / 65536), strconv.Itoa(packed % 65536), ""}
				if packed == 0 {
					want[2] = `""`
				}
				expect.Equal(t, fmt.Sprint("results for ", packed), want, results(t, program, strconv.Itoa(packed)))
			}
		})
	}
	running.Wait()
}

func TestNewRefuses(t *testing.T) {
	_, err := New([]Field{{Name: "a", Schema: schemaOf(t, integer)}}, []Field{{Name: "x", Schema: schemaOf(t, integer), Expression: "self.b"}})
	var failed *CompileError
	if !errors.As(err, &failed) || err.Error() != "the expression of x: undefined field 'b' (line 1, column 5); self has a" {
		t.Errorf("error %v", err)
	}
}

// TestNoClockAndNoChance checks that expressions cannot depend on time or place: their results
// would differ between pods and calls.
func TestNoClockAndNoChance(t *testing.T) {
	scope, err := NewScope(nil, StoredExpressions)
	expect.NoError(t, err)
	pure := regexp.MustCompile(`(?i)now|today|clock|rand|uuid|shuffle|env|file|http|lookup`)
	for name := range scope.Env.Functions() {
		if name != "format.uuid" && pure.MatchString(name) { // which is the format of UUIDs
			t.Errorf("there is a function %s", name)
		}
	}
}
