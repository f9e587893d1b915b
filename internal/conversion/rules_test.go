// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// there is one conversion from a version to the other one, and back.
type there struct{ from, object, want string }

// check converts between v1 and v2. The object has a name, so that it is whole.
func (test there) check(t *testing.T, c *Converter) {
	t.Helper()
	to := map[string]string{"v1": "v2", "v2": "v1"}[test.from]
	object := named(test.from, "", test.object)
	got := convert(t, c, object, to)
	if diff := cmp.Diff(test.want, got); diff != "" {
		t.Fatalf("there (-want +got):\n%s", diff)
	}
	if back := convert(t, c, got, test.from); !sameJSON(t, object, back) {
		t.Errorf("back: %s, want %s", back, object)
	}
}

// named writes an object that has a name, and kept values as annotated does.
func named(version, kept, fields string) string {
	return strings.Replace(strings.Replace(annotated(version, kept, fields), `"metadata":{`, `"metadata":{"name":"w",`, 1), `,}`, `}`, 1)
}

// TestDefault has a field in the hub, and one in the elements of the spoke's list.
func TestDefault(t *testing.T) {
	c := converterOf(t, between(t,
		"o: {type: object, properties: {x: {type: string}}}, l: {type: array, items: {type: object, properties: {x: {type: string}, num: {type: integer}}}}",
		"o: {type: object, properties: {x: {type: string}, mode: {type: string}, own: {type: object, properties: {deep: {type: boolean}}}}}, l: {type: array, items: {type: object, properties: {x: {type: string}}}}",
		`{default: {to: .o.mode, value: Standard}}, {default: {to: .o.own.deep, value: true}}, {default: {from: ".l[*].num", value: 7}}`))
	for name, test := range map[string]there{
		"filled":                  {"v1", `"o":{"x":"1"}`, named("v2", "", `"o":{"x":"1","mode":"Standard","own":{"deep":true}}`)},
		"no object to fill":       {"v1", ``, named("v2", "", ``)},
		"an object that is null":  {"v1", `"o":null`, named("v2", "", `"o":null`)},
		"taken away":              {"v2", `"o":{"mode":"Standard","own":{"deep":true}}`, named("v1", "", `"o":{}`)},
		"escaped otherwise":       {"v2", `"o":{"mode":"St\u0061ndard","own":{"deep":true}}`, named("v1", "", `"o":{}`)},
		"another value":           {"v2", `"o":{"mode":"Odd","own":{"deep":true}}`, named("v1", `v2 {"/o/mode":"Odd"}`, `"o":{}`)},
		"a null":                  {"v2", `"o":{"mode":null,"own":{"deep":true}}`, named("v1", `v2 {"/o/mode":null}`, `"o":{}`)},
		"absent":                  {"v2", `"o":{}`, named("v1", `v2 {"!/o/mode":true,"!/o/own/deep":true}`, `"o":{}`)},
		"absent in an empty one":  {"v2", `"o":{"mode":"Standard","own":{}}`, named("v1", `v2 {"!/o/own/deep":true,"/o/own":{}}`, `"o":{}`)},
		"elements":                {"v1", `"l":[{"num":7},{"num":7,"x":"1"}]`, named("v2", "", `"l":[{},{"x":"1"}]`)},
		"an element with another": {"v1", `"l":[{"num":8},{"num":7}]`, named("v2", `v1 {"/l/0":{"num":8}}`, `"l":[{},{}]`)},
		"an element with none":    {"v1", `"l":[{"x":"1"}]`, named("v2", `v1 {"/l/0":{"x":"1"}}`, `"l":[{"x":"1"}]`)},
	} {
		t.Run(name, func(t *testing.T) { test.check(t, c) })
	}
}

// TestDefaultOfFragment converts what has neither name nor uid: field in, field out.
func TestDefaultOfFragment(t *testing.T) {
	c := converterOf(t, between(t, "x: {type: string}", "x: {type: string}, mode: {type: string}", `{default: {to: .mode, value: Standard}}`))
	if got, want := convert(t, c, widget("v1", `"x":"1"`), "v2"), widget("v2", `"x":"1"`); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	fragment := widget("v2", `"mode":"Standard"`)
	got, want := convert(t, c, fragment, "v1"), annotated("v1", `v2 {"/mode":"Standard"}`, "")
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if back := convert(t, c, got, "v2"); back != fragment {
		t.Errorf("back: %s, want %s", back, fragment)
	}
}

func TestValues(t *testing.T) {
	const fields = "l: {type: array, items: {type: object, properties: {p: {type: string}}}}, p: {type: string}"
	const table = "table: [{from: Allow, to: Parallel}, {from: Forbid, to: Serial}, {from: Never, to: Serial}]"
	c := converterOf(t, between(t, fields, fields+", q: {type: string}",
		"{values: {from: .p, to: .q, "+table+"}}, {values: {from: '.l[*].p', to: '.l[*].p', "+table+"}}"))
	for name, test := range map[string]there{
		"in the table":           {"v1", `"p":"Forbid"`, named("v2", "", `"q":"Serial"`)},
		"back":                   {"v2", `"q":"Serial"`, named("v1", "", `"p":"Forbid"`)},
		"escaped":                {"v1", `"p":"\u0041llow"`, named("v2", "", `"q":"Parallel"`)},
		"not the first":          {"v1", `"p":"Never"`, named("v2", `v1 {"/p":"Never"}`, `"q":"Serial"`)},
		"not in the table":       {"v1", `"p":"Odd"`, named("v2", "", `"q":"Odd"`)},
		"of the other side":      {"v1", `"p":"Serial"`, named("v2", `v1 {"/p":"Serial"}`, `"q":"Serial"`)},
		"of the other side back": {"v2", `"q":"Allow"`, named("v1", `v2 {"/q":"Allow"}`, `"p":"Allow"`)},
		"null":                   {"v1", `"p":null`, named("v2", "", `"q":null`)},
		"absent":                 {"v1", ``, named("v2", "", ``)},
		"not a string":           {"v1", `"p":{"x":1}`, named("v2", "", `"q":{"x":1}`)},
		"elements":               {"v1", `"l":[{"p":"Allow"},{"p":"Never"}]`, named("v2", `v1 {"/l/1":{"p":"Never"}}`, `"l":[{"p":"Parallel"},{"p":"Serial"}]`)},
	} {
		t.Run(name, func(t *testing.T) { test.check(t, c) })
	}
	stale := annotated("v2", `v1 {"/p":"Never"}`, `"q":"Parallel"`)
	if got, want := convert(t, c, stale, "v1"), widget("v1", `"p":"Allow"`); got != want {
		t.Errorf("an edit does not win: got %s, want %s", got, want)
	}
}

// TestDrop converts there and back: what is dropped does not come back.
func TestDrop(t *testing.T) {
	c := converterOf(t, between(t,
		"x: {type: string}, old: {type: object, properties: {a: {type: string}}}, s: {type: object, properties: {a: {type: string}, b: {type: string}}}, l: {type: array, items: {type: object, properties: {x: {type: string}, old: {type: string}, own: {type: string}}}}",
		"x: {type: string}, same: {type: string}, l: {type: array, items: {type: object, properties: {x: {type: string}}}}",
		`{drop: {from: .old}}, {drop: {from: .s.a}}, {drop: {from: ".l[*].old"}}, {drop: {from: '.metadata.labels["old"]'}}, {drop: {to: .same}}`))
	for name, test := range map[string]struct{ from, object, there, back string }{
		"a subtree":                  {"v1", `"x":"1","old":{"a":"1"}`, named("v2", "", `"x":"1"`), named("v1", "", `"x":"1"`)},
		"a null":                     {"v1", `"old":null`, named("v2", "", ``), named("v1", "", ``)},
		"nothing":                    {"v1", ``, named("v2", "", ``), named("v1", "", ``)},
		"part of an object":          {"v1", `"s":{"a":"1","b":"2"}`, named("v2", `v1 {"/s/b":"2"}`, ``), named("v1", "", `"s":{"b":"2"}`)},
		"all of an object":           {"v1", `"s":{"a":"1"}`, named("v2", `v1 {"/s":{}}`, ``), named("v1", "", `"s":{}`)},
		"of an element":              {"v1", `"l":[{"x":"1","old":"2"},{}]`, named("v2", "", `"l":[{"x":"1"},{}]`), named("v1", "", `"l":[{"x":"1"},{}]`)},
		"of an element that is kept": {"v1", `"l":[{"x":"1","old":"2","own":"3"}]`, named("v2", `v1 {"/l/0":{"x":"1","own":"3"}}`, `"l":[{"x":"1"}]`), named("v1", "", `"l":[{"x":"1","own":"3"}]`)},
		"of the hub":                 {"v2", `"same":"1"`, named("v1", "", ``), named("v2", "", ``)},
	} {
		t.Run(name, func(t *testing.T) {
			to := map[string]string{"v1": "v2", "v2": "v1"}[test.from]
			there := convert(t, c, named(test.from, "", test.object), to)
			if diff := cmp.Diff(test.there, there); diff != "" {
				t.Fatalf("there (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.back, convert(t, c, there, test.from)); diff != "" {
				t.Errorf("back (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWrap has lists of the hub, of the spoke, and in elements.
func TestWrap(t *testing.T) {
	const object = "{type: object, properties: {a: {type: string}}}"
	c := converterOf(t, between(t,
		"node: {type: string}, o: "+object+", ips: {type: array, items: {type: string}}, l: {type: array, items: {type: object, properties: {p: {type: integer}}}}",
		"nodes: {type: array, items: {type: string}}, o: {type: array, items: "+object+"}, ip: {type: string}, l: {type: array, items: {type: object, properties: {p: {type: array, items: {type: integer}}}}}",
		`{wrap: {from: .node, to: .nodes}}, {wrap: {from: .o, to: .o}}, {wrap: {from: .ips, to: .ip}}, {wrap: {from: ".l[*].p", to: ".l[*].p"}}`))
	for name, test := range map[string]there{
		"a scalar":            {"v1", `"node":"a"`, named("v2", "", `"nodes":["a"]`)},
		"an object":           {"v1", `"o":{ "a" : "1" }`, named("v2", "", `"o":[{ "a" : "1" }]`)},
		"a list of one":       {"v2", `"nodes":[ "a" ]`, named("v1", "", `"node":"a"`)},
		"the spoke's list":    {"v1", `"ips":["a"]`, named("v2", "", `"ip":"a"`)},
		"a list of two":       {"v2", `"nodes":["a","b"]`, named("v1", `v2 {"/nodes":["a","b"]}`, `"node":"a"`)},
		"a list of two there": {"v1", `"ips":["a","b"]`, named("v2", `v1 {"/ips":["a","b"]}`, `"ip":"a"`)},
		"an empty list":       {"v2", `"nodes":[]`, named("v1", `v2 {"/nodes":[]}`, ``)},
		"a list of null":      {"v2", `"nodes":[null]`, named("v1", `v2 {"/nodes":[null]}`, `"node":null`)},
		"no list":             {"v2", `"nodes":"a"`, named("v1", `v2 {"/nodes":"a"}`, ``)},
		"null":                {"v1", `"node":null,"ips":null`, named("v2", "", `"nodes":null,"ip":null`)},
		"absent":              {"v1", ``, named("v2", "", ``)},
		"elements":            {"v2", `"l":[{"p":[1]},{"p":[2,3]},{}]`, named("v1", `v2 {"/l/1":{"p":[2,3]}}`, `"l":[{"p":1},{"p":2},{}]`)},
	} {
		t.Run(name, func(t *testing.T) { test.check(t, c) })
	}
	stale := annotated("v1", `v2 {"/nodes":["a","b"]}`, `"node":"c"`)
	if got, want := convert(t, c, stale, "v2"), widget("v2", `"nodes":["c"]`); got != want {
		t.Errorf("an edit does not win: got %s, want %s", got, want)
	}
}

// TestCast has strings in the spoke, in the hub, and in elements.
func TestCast(t *testing.T) {
	c := converterOf(t, between(t,
		"port: {type: string}, count: {type: integer}, timeout: {type: string}, l: {type: array, items: {type: object, properties: {p: {type: string}}}}",
		"port: {type: integer}, count: {type: string}, seconds: {type: integer}, l: {type: array, items: {type: object, properties: {p: {type: integer}}}}",
		`{cast: {from: .port, to: .port, as: Integer}}, {cast: {from: .count, to: .count, as: Integer}}, {cast: {from: .timeout, to: .seconds, as: Seconds}}, {cast: {from: ".l[*].p", to: ".l[*].p", as: Integer}}`))
	for name, test := range map[string]there{
		"a string":             {"v1", `"port":"80"`, named("v2", "", `"port":80`)},
		"an integer":           {"v1", `"count":-3`, named("v2", "", `"count":"-3"`)},
		"the largest":          {"v1", `"port":"9223372036854775807"`, named("v2", "", `"port":9223372036854775807`)},
		"beyond the largest":   {"v1", `"port":"9223372036854775808"`, named("v2", `v1 {"/port":"9223372036854775808"}`, ``)},
		"not canonical":        {"v1", `"port":"007"`, named("v2", `v1 {"/port":"007"}`, ``)},
		"a sign":               {"v1", `"port":"+7"`, named("v2", `v1 {"/port":"+7"}`, ``)},
		"no text":              {"v1", `"port":""`, named("v2", `v1 {"/port":""}`, ``)},
		"an exponent":          {"v1", `"count":1e3`, named("v2", `v1 {"/count":1e3}`, ``)},
		"a fraction":           {"v1", `"count":1.0`, named("v2", `v1 {"/count":1.0}`, ``)},
		"no string":            {"v1", `"port":80`, named("v2", `v1 {"/port":80}`, ``)},
		"null":                 {"v1", `"port":null`, named("v2", "", `"port":null`)},
		"absent":               {"v1", ``, named("v2", "", ``)},
		"a duration":           {"v1", `"timeout":"1h30m0s"`, named("v2", "", `"seconds":5400`)},
		"a duration of nought": {"v1", `"timeout":"0s"`, named("v2", "", `"seconds":0`)},
		"seconds":              {"v2", `"seconds":-90`, named("v1", "", `"timeout":"-1m30s"`)},
		"too many seconds":     {"v2", `"seconds":9223372037`, named("v1", `v2 {"/seconds":9223372037}`, ``)},
		"written otherwise":    {"v1", `"timeout":"90s"`, named("v2", `v1 {"/timeout":"90s"}`, `"seconds":90`)},
		"part of a second":     {"v1", `"timeout":"1.5s"`, named("v2", `v1 {"/timeout":"1.5s"}`, ``)},
		"no duration":          {"v1", `"timeout":"soon"`, named("v2", `v1 {"/timeout":"soon"}`, ``)},
		"elements":             {"v1", `"l":[{"p":"1"},{"p":"01"},{}]`, named("v2", `v1 {"/l/1":{"p":"01"}}`, `"l":[{"p":1},{},{}]`)},
	} {
		t.Run(name, func(t *testing.T) { test.check(t, c) })
	}
	stale := annotated("v2", `v1 {"/timeout":"90s"}`, `"seconds":91`)
	if got, want := convert(t, c, stale, "v1"), widget("v1", `"timeout":"1m31s"`); got != want {
		t.Errorf("an edit does not win: got %s, want %s", got, want)
	}
}
